# What the library is made of, and how it is compiled. Used for the library proper and for
# spate_testing, the same sources with the fault seam of src/sys.

include(${CMAKE_CURRENT_LIST_DIR}/cares.cmake)
if(NOT TARGET c-ares::cares)
  message(FATAL_ERROR "c-ares, with which spate looks names up, was not found (ares.h, libcares). "
                      "Run `tools/setup test`, or install libc-ares-dev; if it is elsewhere, say "
                      "where: -DCMAKE_PREFIX_PATH=<prefix>.")
endif()

# The library's sources: all of src/ but its tests and what only tests use.
function(spate_sources result)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/src/(.*/)?testing/")
  if(NOT sources)
    message(FATAL_ERROR "No source file found in ${PROJECT_SOURCE_DIR}/src.")
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# What a user of the library needs to compile and link.
function(spate_interface target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(SPATE_HARDENED)
    target_compile_definitions(${target} PUBLIC SPATE_HARDENED=1)
  endif()
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE c-ares::cares)
endfunction()

# How spate's own code, library or test, is compiled.
function(spate_own_code target)
  spate_warnings(${target})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  # -iquote and not -I: src/sys/ must never be found for the C library's <sys/...>.
  target_compile_options(${target} PRIVATE
    "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src" "SHELL:-iquote ${PROJECT_SOURCE_DIR}")
endfunction()

# A target that compiles the library's sources.
function(spate_configure target)
  spate_interface(${target})
  spate_own_code(${target})
  # src/core/user_code.h ends the program when a callback throws: for that alone.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fexceptions>)
  target_compile_options(${target} PRIVATE
    -fvisibility=hidden -fvisibility-inlines-hidden -fno-plt)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # A base class's own function is hardly ever called.
    target_compile_options(${target} PRIVATE
      -fno-semantic-interposition -fno-devirtualize-speculatively)
  endif()
  # A user's sanitizer looks for the type of the categories, which std::error_code calls from his
  # own code.
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/core/error.cc ${PROJECT_SOURCE_DIR}/src/net/names/name_error.cc
    TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -frtti)
endfunction()

# The sources of a folder as one: a quarter of the time, as each header is read once a folder, and
# functions are inlined across them. Other builds show whether each can be compiled by itself.
function(spate_compile_by_folder target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE  # Only of a header would it be true.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
      UNITY_GROUP ${group})
  endforeach()
endfunction()
