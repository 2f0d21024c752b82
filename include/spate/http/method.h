// Method: the method of a request (RFC 9110 §9, RFC 5789).
// Threads: any; the values are constants or plain copies.
#pragma once

#include <cstdint>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// `other` is any other method: its name is in the request (PROPFIND, REPORT, ...).
enum class Method : std::uint8_t {
  get,
  head,
  post,
  put,
  patch,
  del,
  options,
  trace,
  connect,
  other
};

// Returns "GET", "DELETE", ...; empty for `other`.
SPATE_EXPORT std::string_view name_of(Method method);
// Names are case-sensitive: "get" is `other`.
SPATE_EXPORT Method method_of(std::string_view name);

// Returns whether the method changes nothing on the server (RFC 9110 §9.2.1).
SPATE_EXPORT bool is_safe(Method method);
// Returns whether repeating the request has no further effect (RFC 9110 §9.2.2): a client may then
// retry it.
SPATE_EXPORT bool is_idempotent(Method method);

}  // namespace spate::http
