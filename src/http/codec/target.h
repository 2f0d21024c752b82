// RequestTarget: the target of a request line, in one of the four forms of RFC 9112 §3.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "http/codec/host.h"
#include "spate/http/method.h"

namespace spate::http {

// Has views into the parsed text.
struct RequestTarget {
  enum class Form : std::uint8_t {
    origin,     // "/path?query": all other cases.
    absolute,   // "http://host/path?query": for proxies; servers must accept it.
    authority,  // "host:port": for CONNECT only.
    asterisk,   // "*": for OPTIONS, for the whole server.
  };

  Form form = Form::origin;
  std::string_view scheme = {};     // In the absolute form, as it was sent: of any case.
  std::string_view authority = {};  // The target's authority, if it has one; it replaces Host.
  HostPort host = {};               // Its parts. Never empty in these forms.
  // Begins with a slash. "/" if the absolute form has none; "*" in the asterisk form, and for
  // OPTIONS in the absolute form without a path; empty in the authority form. Its escapes are
  // valid.
  std::string_view path = {};
  std::string_view query = {};  // Without the question mark. May have a '%' that begins no escape.
  bool has_query = false;       // "/path?" has an empty one.
};

// Parses a target. Returns nullopt if it is invalid, or not allowed for the method: 400 (Bad
// Request). A path and a query may have the characters of RFC 3986, and others that browsers send
// unescaped (see uri_chars.h). Controls, blanks, ", <, >, # and bytes above 126 are refused, as is
// userinfo (RFC 9110 §4.2.4).
std::optional<RequestTarget> parse_target(std::string_view text, Method method);

}  // namespace spate::http
