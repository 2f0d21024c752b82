# spate_add_test(<name> LABEL <label> SOURCES <file>...): one GoogleTest executable, each of whose
# tests is a test of ctest, named <label>.<Suite>.<Test>.
function(spate_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "SOURCES")
  if(NOT arg_LABEL OR NOT arg_SOURCES)
    message(FATAL_ERROR "spate_add_test(${name}): LABEL and SOURCES are needed.")
  endif()
  add_executable(${name} ${arg_SOURCES})
  spate_own_code(${name})
  # GoogleTest's macros are statements with an else of their own.
  target_compile_options(${name} PRIVATE -Wno-dangling-else)
  target_compile_options(${name} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE spate_testing GTest::gmock GTest::gtest GTest::gtest_main)
  if(NOT TARGET tests_of_${arg_LABEL})  # To build what one label needs.
    add_custom_target(tests_of_${arg_LABEL})
  endif()
  add_dependencies(tests_of_${arg_LABEL} ${name})
  gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT 120)
endfunction()

# spate_add_program(<name> LABEL <label> SOURCE <file> LINK <library>...): a program as a user would
# write it, linked to the library as it is installed; as a test it passes when it exits with 0.
function(spate_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;SOURCE" "LINK")
  add_executable(${name} ${arg_SOURCE})
  spate_warnings(${name})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 60)
endfunction()
