# The one place for language level, warnings, hardening and sanitizers.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR
    "g++ ${CMAKE_CXX_COMPILER_VERSION} miscompiles C++20 coroutines (objects inside a co_await expression are destroyed "
    "twice). Use clang 19: `apt-get install clang-19`, then `cmake --preset dev`.")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers are compared by content, not by time stamp.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

set(PRIMS_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")

# Flags that every target of ours shares.
add_library(prims_flags INTERFACE)
target_compile_options(prims_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnull-dereference -Wnon-virtual-dtor
  -Wimplicit-fallthrough -Wno-missing-field-initializers -Wno-c23-extensions
  -fstack-protector-strong -fstack-clash-protection -fcf-protection
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fno-omit-frame-pointer -fPIE
  $<$<CXX_COMPILER_ID:Clang>:-Xclang;-fno-pch-timestamp>)
target_compile_definitions(prims_flags INTERFACE _GLIBCXX_ASSERTIONS)
if(NOT PRIMS_SANITIZE)
  target_compile_definitions(prims_flags INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=3>)
endif()
target_link_options(prims_flags INTERFACE -pie -fuse-ld=lld -Wl,-z,relro,-z,now,-z,noexecstack)
target_include_directories(prims_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)

if(PRIMS_SANITIZE)
  target_compile_options(prims_flags INTERFACE -fsanitize=${PRIMS_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(prims_flags INTERFACE -fsanitize=${PRIMS_SANITIZE})
endif()

# -O2 in release, with debug information that split_debug() moves beside the program.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g1")
