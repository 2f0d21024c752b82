option(SPATE_TESTS_GROUPED "Compile the tests several files at a time" ON)
option(SPATE_LIBRARY_GROUPED "Compile the tests' library a folder at a time" ON)
# Each test of these groups is a process. The tests of threads need one each, and the tests of
# chaos take long.
set(SPATE_TESTS_ALONE threads chaos)
# In these the tests themselves take the time, unless a sanitizer makes them long to compile.
set(SPATE_TESTS_OPTIMIZED chaos swarms)
if(SPATE_SANITIZE)
  set(SPATE_TESTS_OPTIMIZED)
endif()
option(SPATE_TESTS_ON_KQUEUE "Tests that name no backend use kqueue (on Linux, a stand-in)" OFF)
option(SPATE_TESTS_SHARED "Link the tests to a shared library (tools/mutants.py)" OFF)
option(SPATE_TESTS_REACH "Let the tests note which code they reach (tools/mutants.py)" OFF)

# A sanitized library is not installed. So it has the fault seam, and spate_testing has its objects.
if(SPATE_SANITIZE)
  set(SPATE_SEAMED_OBJECTS ${SPATE_LIBRARY_OBJECTS})
endif()

# nghttp2 is the oracle of src/http2/testing.
include(${CMAKE_CURRENT_LIST_DIR}/nghttp2.cmake)
if(SPATE_TESTS AND NOT TARGET nghttp2::nghttp2)
  message(FATAL_ERROR "The tests need nghttp2. Run `tools/setup test`, install libnghttp2-dev, or "
                      "build without the tests: -DSPATE_TESTS=OFF.")
endif()

# Headers of the tests for which each system has its own version, included as "system/...".
set(SPATE_TESTS_OF_SYSTEM ${PROJECT_SOURCE_DIR}/tests/support/${SPATE_SYSTEM})

# spate_testing: the libraries once more, as one, with the fault seam, which those proper have not.
function(spate_add_testing_library)
  spate_sources_of(spate library_sources)
  foreach(room IN LISTS SPATE_ROOMS)
    if(NOT TARGET spate_${room}_objects)
      message(FATAL_ERROR "The tests need all of spate, but spate::${room} is not built. Run "
                          "`tools/setup test`, or build without the tests: -DSPATE_TESTS=OFF.")
    endif()
    spate_sources_of(${room} room_sources)
    list(APPEND library_sources ${room_sources})
    list(APPEND packages ${SPATE_NEEDS_${room}})
  endforeach()
  file(GLOB_RECURSE testing_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
  list(FILTER testing_sources INCLUDE REGEX "/src/(.*/)?testing/")
  list(FILTER testing_sources EXCLUDE REGEX "_test\\.cc$")
  if(SPATE_SEAMED_OBJECTS)
    set(library_sources)
  endif()
  set(kind STATIC)
  if(SPATE_TESTS_SHARED)
    set(kind SHARED)
  endif()
  add_library(spate_testing ${kind} ${library_sources} ${testing_sources})
  spate_configure(spate_testing)
  # Tests of the parts include the headers of these packages.
  target_link_libraries(spate_testing PUBLIC ${packages} nghttp2::nghttp2)
  if(SPATE_TESTS_SHARED)  # The tests of its parts need symbols that the real library hides.
    target_compile_options(spate_testing PRIVATE
      -fvisibility=default -fno-visibility-inlines-hidden)
  endif()
  set_target_properties(spate_testing PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(spate_testing PUBLIC SPATE_FAULTS=1)
  target_include_directories(spate_testing PUBLIC ${SPATE_TESTS_OF_SYSTEM})
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")  # It has no kqueue, so the tests bring a stand-in.
    set(stand_in ${PROJECT_SOURCE_DIR}/tests/kqueue/stand_in)
    set(with_kqueue spate_testing ${SPATE_SEAMED_OBJECTS})
    set(owner spate_testing)
    if(SPATE_SEAMED_OBJECTS)  # The backend is in them.
      set(owner spate_objects)
    endif()
    target_sources(${owner} PRIVATE ${stand_in}/kqueue.cc)
    foreach(target IN LISTS with_kqueue)
      target_include_directories(${target} PRIVATE ${stand_in})
      target_compile_definitions(${target} PRIVATE SPATE_KQUEUE_STAND_IN=1)
    endforeach()
    target_include_directories(spate_testing INTERFACE ${stand_in})  # The stand-in has tests.
  endif()
  if(SPATE_TESTS_ON_KQUEUE)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/backend/registry.cc
      TARGET_DIRECTORY spate_testing ${SPATE_SEAMED_OBJECTS}
      APPEND PROPERTY COMPILE_DEFINITIONS SPATE_TESTS_ON_KQUEUE)
  endif()
  if(SPATE_TESTS_REACH)
    set(nothing ${PROJECT_SOURCE_DIR}/tests/support/reach_nothing.cc)
    target_sources(spate_testing PRIVATE ${nothing})
    target_compile_options(spate_testing PRIVATE -fsanitize-coverage=trace-pc -g1)
    set_source_files_properties(${nothing} PROPERTIES
      COMPILE_OPTIONS -fno-sanitize-coverage=trace-pc SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(SPATE_LIBRARY_GROUPED)
    spate_compile_by_folder(spate_testing)
  endif()
  foreach(objects IN LISTS SPATE_SEAMED_OBJECTS)
    target_compile_definitions(${objects} PRIVATE SPATE_FAULTS=1)
    target_sources(spate_testing PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# spate_sim_testing: the same in a simulated kernel, if objcopy is there.
function(spate_add_simulated_testing_library)
  spate_add_simulated_library(spate_sim_testing OBJECTS spate_testing ${SPATE_SEAMED_OBJECTS})
  if(TARGET spate_sim_testing)
    target_compile_definitions(spate_sim_testing INTERFACE SPATE_FAULTS=1)
    target_include_directories(spate_sim_testing INTERFACE ${SPATE_TESTS_OF_SYSTEM})
    target_link_libraries(spate_sim_testing INTERFACE nghttp2::nghttp2)
    foreach(room IN LISTS SPATE_ROOMS)
      target_link_libraries(spate_sim_testing INTERFACE ${SPATE_NEEDS_${room}})
    endforeach()
  endif()
endfunction()

# spate_add_test(<name> LABEL <label> SOURCES <file>...): one GoogleTest executable. The tests of
# ctest are shares of its tests, <name>.1 to <name>.12, because starting a process takes longer than
# most tests. In the groups of SPATE_TESTS_ALONE each test is one of ctest's, named
# <label>.<Suite>.<Test>. LIBRARY replaces spate_testing. WHOLE makes the executable one test.
# SIMULATED gives the sources the simulated kernel, too.
function(spate_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WHOLE;SIMULATED" "LABEL;LIBRARY" "SOURCES")
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY spate_testing)
  endif()
  if(NOT arg_LABEL OR NOT arg_SOURCES)
    message(FATAL_ERROR "spate_add_test(${name}): LABEL and SOURCES are needed.")
  endif()
  add_executable(${name} ${arg_SOURCES})
  spate_own_code(${name})
  # GoogleTest's macros expand to statements with an else.
  target_compile_options(${name} PRIVATE -Wno-dangling-else)
  if(NOT arg_LABEL IN_LIST SPATE_TESTS_OPTIMIZED)  # Others are sooner compiled than run.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(SPATE_TESTS_REACH)
    set(reach ${PROJECT_SOURCE_DIR}/tests/support/reach.cc)
    target_sources(${name} PRIVATE ${reach})
    set_source_files_properties(${reach} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_compile_options(${name} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${arg_LIBRARY} GTest::gmock GTest::gtest GTest::gtest_main)
  if(SPATE_TESTS_GROUPED)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    # An earlier file of the group may have a global of the same name.
    target_compile_options(${name} PRIVATE -Wno-shadow)
  endif()
  if(arg_SIMULATED)
    spate_replace_calls(${name})
  elseif(arg_LIBRARY STREQUAL "spate_sim_testing")
    spate_refuse_own_calls(${name})
  endif()
  if(NOT TARGET tests_of_${arg_LABEL})  # Builds everything that one label needs.
    add_custom_target(tests_of_${arg_LABEL})
  endif()
  add_dependencies(tests_of_${arg_LABEL} ${name})
  if(arg_WHOLE)
    spate_share_tests(${name} ${arg_LABEL} 1)
  elseif(arg_LABEL IN_LIST SPATE_TESTS_ALONE)
    gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
  else()
    spate_share_tests(${name} ${arg_LABEL} 12)
  endif()
endfunction()

# Adds the tests of an executable as `shares` tests of ctest. Each share writes the results of its
# tests to results/, which tools/run_tests reads.
function(spate_share_tests name label shares)
  foreach(share RANGE 1 ${shares})
    math(EXPR index "${share} - 1")
    set(test ${name}.${share})
    add_test(NAME ${test} COMMAND ${name} --gtest_color=no)
    set(result "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/results/${test}.xml")
    set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT 900
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shares};GTEST_SHARD_INDEX=${index};${result}")
  endforeach()
endfunction()

# spate_build_program(<name> SOURCE <file> LINK <library>...): a program as a user would write it,
# linked to the library as it is installed.
function(spate_build_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "LINK")
  add_executable(${name} ${arg_SOURCE})
  spate_warnings(${name})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
endfunction()

# spate_add_program(<name> LABEL <label> SOURCE <file> LINK <library>...): the same as a test, which
# passes when the program exits with 0.
function(spate_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;SOURCE" "LINK")
  spate_build_program(${name} SOURCE ${arg_SOURCE} LINK ${arg_LINK})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
endfunction()

# spate_add_go_peer(<name> <source>): compiles a peer written in Go, if Go is installed, to
# SPATE_GO_PEERS/<name>. It is part of the build because Go compiles its own library into an empty
# cache, which takes a minute. If Go or a package lacks something, there is no program, and the
# tests skip. Debian's packages of Go are in /usr/share/gocode.
set(SPATE_GO_PEERS ${PROJECT_BINARY_DIR}/go_peers)
find_program(SPATE_GO go PATHS /usr/local/go/bin)
mark_as_advanced(SPATE_GO)
function(spate_add_go_peer name source)
  if(NOT SPATE_GO)
    return()
  endif()
  set(program ${SPATE_GO_PEERS}/${name})
  set(variables GOCACHE=${PROJECT_BINARY_DIR}/go_cache GOFLAGS= GO111MODULE=off
                GOTOOLCHAIN=local GOPATH=/usr/share/gocode)
  add_custom_command(OUTPUT ${program}.tried
    COMMAND ${CMAKE_COMMAND} -E env ${variables} ${SPATE_GO} build -o ${program} ${source}
            || ${CMAKE_COMMAND} -E rm -f ${program}
    COMMAND ${CMAKE_COMMAND} -E touch ${program}.tried
    DEPENDS ${source} JOB_POOL go_peers COMMENT "Peer in Go: ${name}" VERBATIM)
  add_custom_target(go_peer_${name} ALL DEPENDS ${program}.tried)
endfunction()
set_property(GLOBAL APPEND PROPERTY JOB_POOLS go_peers=1)  # The cache is filled once.
