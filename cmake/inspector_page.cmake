# The page of http::Inspector as C++: one document, with its style and script inside, and the policy
# that lets a browser take these two, by their hashes, and no others. Made again by CMake when a
# part has changed.

# The base64 of a SHA-256, given as 64 hexadecimal digits.
function(spate_base64_of_hash hash result)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(APPEND hash "00")  # 33 bytes are eleven groups of three; the last sign becomes padding.
  set(text "")
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hash}" ${at} 6 digits)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 sign)
      string(APPEND text "${sign}")
    endforeach()
  endforeach()
  string(SUBSTRING "${text}" 0 43 text)
  set(${result} "${text}=" PARENT_SCOPE)
endfunction()

# spate_inspector_page(<result>): the generated source.
function(spate_inspector_page result)
  set(folder ${PROJECT_SOURCE_DIR}/src/http/inspector/page)
  foreach(part html css js)
    file(READ ${folder}/page.${part} ${part})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/page.${part})
  endforeach()
  string(SHA256 style_hash "${css}")
  string(SHA256 script_hash "${js}")
  spate_base64_of_hash(${style_hash} style_hash)
  spate_base64_of_hash(${script_hash} script_hash)
  string(REPLACE "@style@" "${css}" page "${html}")
  string(REPLACE "@script@" "${js}" page "${page}")
  set(file ${PROJECT_BINARY_DIR}/generated/inspector_page.cc)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [=[
#include "http/inspector/page.h"

namespace spate::http {

const std::string_view kInspectorPagePolicy =
    "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; style-src 'sha256-@style_hash@'; "
    "script-src 'sha256-@script_hash@'";
const std::string_view kInspectorPage = R"page(@page@)page";

}  // namespace spate::http
]=])
  set(${result} ${file} PARENT_SCOPE)
endfunction()
