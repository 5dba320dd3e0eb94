# One folder under src/ is one static library, one namespace and at most one test program.
#
#   prims_module(sandbox
#     SOURCES process.cpp ...      translation units
#     HEADERS process.h ...        public headers, each must compile alone
#     USES base io                 other modules (the arrows of layers.txt)
#     LIBRARIES PkgConfig::SECCOMP third-party targets, public
#     TESTS process_test.cpp ...   become `sandbox_test`, which links only this module and what it declares
#     LABELS unit)                 ctest labels of that program: unit, sandbox, e2e, slow

function(prims_module name)
  cmake_parse_arguments(M "" "" "SOURCES;HEADERS;USES;LIBRARIES;TESTS;TEST_LIBRARIES;LABELS" ${ARGN})
  set(target prims_${name})
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} prims_common ${M_LIBRARIES})
  if(PRIMS_PCH AND M_SOURCES)
    target_precompile_headers(${target} REUSE_FROM prims_pch)
  endif()
  foreach(used IN LISTS M_USES)
    target_link_libraries(${target} ${scope} prims_${used})
  endforeach()
  if(M_HEADERS)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${M_HEADERS})
  endif()
  if(PRIMS_TESTS AND M_TESTS)
    add_executable(${name}_test ${M_TESTS})
    target_link_libraries(${name}_test PRIVATE ${target} GTest::gtest GTest::gmock GTest::gtest_main ${M_TEST_LIBRARIES})
    if(PRIMS_PCH)
      target_precompile_headers(${name}_test REUSE_FROM prims_pch)
    endif()
    add_test(NAME ${name} COMMAND ${name}_test)
    if(NOT M_LABELS)
      set(M_LABELS unit)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${M_LABELS}" TIMEOUT 600)
  endif()
endfunction()

# Moves debug information of a finished program into PROGRAM.debug, linked by build id.
function(prims_split_debug target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_link_options(${target} PRIVATE -Wl,--build-id=sha1)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:${target}> $<TARGET_FILE:${target}>.debug
      COMMAND ${CMAKE_STRIP} --strip-unneeded $<TARGET_FILE:${target}>
      COMMAND ${CMAKE_OBJCOPY} --add-gnu-debuglink=$<TARGET_FILE:${target}>.debug $<TARGET_FILE:${target}>
      VERBATIM)
  endif()
endfunction()
