option(SPATE_TESTS_GROUPED "Compile the tests several files at a time" ON)
# Those of threads are better off alone, and those of chaos take long enough.
set(SPATE_TESTS_IN_SHARES unit conformance streams http tls coro c faults sim swarms regressions)
# In these, what runs long is the tests.
set(SPATE_TESTS_OPTIMIZED chaos swarms)
option(SPATE_TESTS_SHARED "Link the tests to a shared library (tools/mutants.py)" OFF)

# spate_testing: the libraries once more, as one, with the fault seam, which those proper have not.
function(spate_add_testing_library)
  spate_sources_of(spate library_sources)
  foreach(room IN LISTS SPATE_ROOMS)
    if(NOT TARGET spate_${room}_objects)
      message(FATAL_ERROR "The tests need all of spate: ${SPATE_NEEDS_${room}} was not found. Run "
                          "`tools/setup test`, or build without the tests: -DSPATE_TESTS=OFF.")
    endif()
    spate_sources_of(${room} room_sources)
    list(APPEND library_sources ${room_sources})
    list(APPEND packages ${SPATE_NEEDS_${room}})
  endforeach()
  file(GLOB_RECURSE testing_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
  list(FILTER testing_sources INCLUDE REGEX "/src/(.*/)?testing/")
  list(FILTER testing_sources EXCLUDE REGEX "_test\\.cc$")
  set(kind STATIC)
  if(SPATE_TESTS_SHARED)
    set(kind SHARED)
  endif()
  add_library(spate_testing ${kind} ${library_sources} ${testing_sources})
  spate_configure(spate_testing)
  target_link_libraries(spate_testing PRIVATE ${packages})
  if(SPATE_TESTS_SHARED)  # What the library proper hides, the tests of its parts need.
    target_compile_options(spate_testing PRIVATE
      -fvisibility=default -fno-visibility-inlines-hidden)
  endif()
  set_target_properties(spate_testing PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(spate_testing PUBLIC SPATE_FAULTS=1)
  # A developer's build shows whether each source can be compiled by itself; by folder it is sooner
  # done from the beginning, as everywhere else.
  if(SPATE_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug" OR DEFINED ENV{CI})
    spate_compile_by_folder(spate_testing)
  endif()
endfunction()

# spate_sim_testing: the same in a simulated kernel, if objcopy is there.
function(spate_add_simulated_testing_library)
  spate_add_simulated_library(spate_sim_testing OBJECTS spate_testing)
  if(TARGET spate_sim_testing)
    target_compile_definitions(spate_sim_testing INTERFACE SPATE_FAULTS=1)
    foreach(room IN LISTS SPATE_ROOMS)
      target_link_libraries(spate_sim_testing INTERFACE ${SPATE_NEEDS_${room}})
    endforeach()
  endif()
endfunction()

# spate_add_test(<name> LABEL <label> SOURCES <file>...): one GoogleTest executable, each of whose
# tests is a test of ctest, named <label>.<Suite>.<Test>. With LIBRARY it is linked to that one in
# place of spate_testing. A sanitizer takes longer to start a program than most tests take, so there
# the tests of ctest are shares of the executable's: <name>.1, <name>.2, ...
function(spate_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;LIBRARY" "SOURCES")
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY spate_testing)
  endif()
  if(NOT arg_LABEL OR NOT arg_SOURCES)
    message(FATAL_ERROR "spate_add_test(${name}): LABEL and SOURCES are needed.")
  endif()
  add_executable(${name} ${arg_SOURCES})
  spate_own_code(${name})
  # GoogleTest's macros are statements with an else of their own.
  target_compile_options(${name} PRIVATE -Wno-dangling-else)
  if(NOT arg_LABEL IN_LIST SPATE_TESTS_OPTIMIZED)  # Others are sooner compiled than run.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_compile_options(${name} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${arg_LIBRARY} GTest::gmock GTest::gtest GTest::gtest_main)
  if(SPATE_TESTS_GROUPED)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
    target_compile_options(${name} PRIVATE -Wno-shadow)  # What is global in the file before.
  endif()
  if(NOT TARGET tests_of_${arg_LABEL})  # To build what one label needs.
    add_custom_target(tests_of_${arg_LABEL})
  endif()
  add_dependencies(tests_of_${arg_LABEL} ${name})
  if(SPATE_SANITIZE AND arg_LABEL IN_LIST SPATE_TESTS_IN_SHARES)
    spate_share_tests(${name} ${arg_LABEL})
  else()
    gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
  endif()
endfunction()

function(spate_share_tests name label)
  set(shares 12)
  foreach(share RANGE 1 ${shares})
    math(EXPR index "${share} - 1")
    add_test(NAME ${name}.${share} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}.${share} PROPERTIES LABELS ${label} TIMEOUT 900
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shares};GTEST_SHARD_INDEX=${index}")
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
