# SPATE_SANITIZE holds for everything that is built: half a sanitized program finds half the faults.
set(spate_sanitizers_known "" "address" "undefined" "address,undefined" "thread")
if(NOT SPATE_SANITIZE IN_LIST spate_sanitizers_known)
  message(FATAL_ERROR "SPATE_SANITIZE=${SPATE_SANITIZE} is not known. "
                      "Use \"address,undefined\", \"address\", \"undefined\", \"thread\" or \"\".")
endif()

if(SPATE_FUZZ)  # The library tells libFuzzer which ways it has gone.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(SPATE_SANITIZE)
  add_compile_options(-fsanitize=${SPATE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -g -O1)
  add_link_options(-fsanitize=${SPATE_SANITIZE})
endif()
