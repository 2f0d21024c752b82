# SPATE_SANITIZE holds for everything that is built: half a sanitized program finds half the faults.
set(spate_sanitizers_known "" "address" "undefined" "address,undefined" "thread")
if(NOT SPATE_SANITIZE IN_LIST spate_sanitizers_known)
  message(FATAL_ERROR "SPATE_SANITIZE=${SPATE_SANITIZE} is not known. "
                      "Use \"address,undefined\", \"address\", \"undefined\", \"thread\" or \"\".")
endif()

if(SPATE_SANITIZE)
  # Reports need function names and lines only. Full debug information takes a fifth of the time.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(spate_lines -gline-tables-only)
  else()
    set(spate_lines -g1)
  endif()
  add_compile_options(-fsanitize=${SPATE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer ${spate_lines} -O1)
  add_link_options(-fsanitize=${SPATE_SANITIZE})
  # A sanitizer allows an index beyond the size of a std::vector, within its capacity.
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
  # It links these large programs in a quarter of the time.
  find_program(SPATE_LLD NAMES ld.lld-19 ld.lld)
  mark_as_advanced(SPATE_LLD)
  if(SPATE_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
endif()
