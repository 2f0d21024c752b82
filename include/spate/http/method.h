// Method: the verb of a request (RFC 9110 §9, RFC 5789).
#pragma once

#include <cstdint>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// `other` is a method that is none of these: its name is in the request (PROPFIND, REPORT, ...).
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

// "GET", "DELETE", ...; empty for `other`.
SPATE_EXPORT std::string_view name_of(Method method);
// Names are case-sensitive: "get" is `other`.
SPATE_EXPORT Method method_of(std::string_view name);

// It changes nothing on the server (RFC 9110 §9.2.1).
SPATE_EXPORT bool is_safe(Method method);
// Several of it have the effect of one (RFC 9110 §9.2.2): a client may repeat it.
SPATE_EXPORT bool is_idempotent(Method method);

}  // namespace spate::http
