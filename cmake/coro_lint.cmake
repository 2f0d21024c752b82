# spate_coro_lint(TARGET): the build of TARGET fails if one of its sources has coroutine code that
# g++ 12 miscompiles (docs/guide/coroutine-compilers.md). Headers are checked only if they are
# sources of the target. Without Python 3 or the checker, it warns, and nothing is checked.
#
# The global property spate_coro_lint is the path of the checker, tools/coro_lint.py.
function(spate_coro_lint target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "spate_coro_lint(${target}): there is no target of that name")
  endif()
  get_property(checker GLOBAL PROPERTY spate_coro_lint)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT Python3_FOUND OR NOT EXISTS ${checker})
    message(WARNING "spate_coro_lint(${target}) checks nothing, because ${checker} or Python 3 is "
                    "missing (Debian: apt install spate-tools)")
    return()
  endif()
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(names ${target} SOURCES)
  set(sources)
  foreach(name IN LISTS names)
    if(NOT name MATCHES "\\.(cc|cpp|cxx|h|hh|hpp)$")
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH name BASE_DIRECTORY ${directory} NORMALIZE)
    list(APPEND sources ${name})
  endforeach()
  set(passed ${CMAKE_CURRENT_BINARY_DIR}/${target}_coro_lint.passed)
  add_custom_command(OUTPUT ${passed}
                     COMMAND Python3::Interpreter ${checker} ${sources}
                     COMMAND ${CMAKE_COMMAND} -E touch ${passed}
                     DEPENDS ${sources} ${checker}
                     COMMENT "Checking the coroutines of ${target}" VERBATIM)
  add_custom_target(${target}_coro_lint DEPENDS ${passed})
  add_dependencies(${target} ${target}_coro_lint)
endfunction()
