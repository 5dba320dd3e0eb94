# Well-kept libraries, all from the distribution. Packages are named in scripts/setup_env.sh.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(PYTHON REQUIRED python3)  # headers only: the module for templates keeps to the stable ABI of 3.9

# What every module but the launcher compiles with. One set of definitions everywhere, so that one precompiled header serves all.
add_library(prims_common INTERFACE)
target_link_libraries(prims_common INTERFACE prims_flags Boost::headers Boost::json Boost::url OpenSSL::SSL OpenSSL::Crypto
                      fmt::fmt spdlog::spdlog Threads::Threads)
target_compile_definitions(prims_common INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)

if(PRIMS_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
  add_library(prims_pch STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
  target_link_libraries(prims_pch PRIVATE prims_common)
  target_precompile_headers(prims_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
endif()

if(PRIMS_TESTS)
  find_package(GTest REQUIRED)
endif()
