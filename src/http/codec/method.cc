#include "spate/http/method.h"

#include <algorithm>
#include <iterator>

namespace spate::http {

namespace {

// In the order of the enumeration.
constexpr std::string_view kNames[] = {"GET",    "HEAD",    "POST",  "PUT",    "PATCH",
                                       "DELETE", "OPTIONS", "TRACE", "CONNECT"};

}  // namespace

std::string_view name_of(Method method) {
  return method == Method::other ? std::string_view() : kNames[static_cast<std::size_t>(method)];
}

Method method_of(std::string_view name) {
  if (name == "GET") return Method::get;
  return static_cast<Method>(std::ranges::find(kNames, name) - std::begin(kNames));
}

bool is_safe(Method method) {
  return method == Method::get || method == Method::head || method == Method::options ||
         method == Method::trace;
}

bool is_idempotent(Method method) {
  return is_safe(method) || method == Method::put || method == Method::del;
}

}  // namespace spate::http
