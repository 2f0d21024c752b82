// RequestTarget: what a request line asks for, in one of the four forms of RFC 9112 §3.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "http/codec/host.h"
#include "spate/http/method.h"

namespace spate::http {

// Views into the text that was parsed.
struct RequestTarget {
  enum class Form : std::uint8_t {
    origin,     // "/path?query": everything but what follows.
    absolute,   // "http://host/path?query": to a proxy; servers must take it, too.
    authority,  // "host:port": with CONNECT, and nothing else.
    asterisk,   // "*": with OPTIONS, about the whole server.
  };

  Form form = Form::origin;
  std::string_view scheme =
      {};  // Of the absolute form, as it was sent: letters may be of any case.
  std::string_view authority = {};  // Of the absolute and the authority form: it replaces Host.
  HostPort host = {};               // The same in its parts. Never empty in these forms.
  // Begins with a slash. "/" if the absolute form has none; "*" in the asterisk form; empty in the
  // authority form. Its escapes are whole.
  std::string_view path = {};
  std::string_view query = {};  // Without the question mark; may have a % that begins no escape.
  bool has_query = false;       // "/path?" has one, which is empty.
};

// None if it is no target, or not one for this method: 400 (Bad Request). A path and a query have
// the characters of RFC 3986, and those beyond that browsers send as they are (see uri_chars.h).
// Controls, blanks, ", <, >, # and bytes above 126 are refused, as is userinfo (RFC 9110 §4.2.4).
std::optional<RequestTarget> parse_target(std::string_view text, Method method);

}  // namespace spate::http
