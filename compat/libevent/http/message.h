// What the lines of a message of HTTP/1 mean: pure functions of text and of lists of headers.
//
// Semantics: event2/http.h; which lines are accepted, and how a body is framed: probes of Debian's
// 2.1.12 with its security fixes.
//
// spate's own codec (src/http/codec) is not used: evhttp accepts what that refuses, and programs
// may rely on it (lines that end with LF, headers that go on in the next line, any text as a
// target, answers without an end), and it stores headers as the program's evkeyvals. Where the
// original's leniency lets two servers see different messages in the same bytes, this one refuses:
// docs/drop-in.md has the list.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "compat/libevent/http/headers.h"

namespace spate::libevent {

struct Version {
  int major;
  int minor;
  bool is_at_least_1_1() const { return major > 1 || (major == 1 && minor >= 1); }
};

struct RequestLine {
  std::string_view method;
  std::string_view target;
  Version version;
};

struct StatusLine {
  Version version;
  int code;
  std::string_view reason;
};

std::optional<RequestLine> parse_request_line(std::string_view line);
std::optional<StatusLine> parse_status_line(std::string_view line);

// 0 for a method that is none.
int method_of(std::string_view name);
const char* name_of(evhttp_cmd_type method);

// Adds one line of headers, or to the last one of them. False if it is malformed, or memory ran
// out.
bool add_header_line(evkeyvalq& headers, std::string_view line);

// How long a body is.
struct Framing {
  bool is_chunked;
  std::int64_t length;  // -1: the headers do not say.
};

// None if the headers contradict themselves or each other.
std::optional<Framing> framing_of(const evkeyvalq& headers);

// Of a request: an encoding whose end nobody knows is refused, too.
std::optional<Framing> request_framing_of(const evkeyvalq& headers);

// The size of the next chunk; none if the line is no size.
std::optional<std::int64_t> parse_chunk_size(std::string_view line);

// The version is 1.0, and the headers ask for another request on the connection.
bool is_kept_alive(const evkeyvalq& headers);
// The headers, which are of a request by proxy or not, end the connection.
bool closes_connection(const evhttp_request& request, const evkeyvalq& headers);

}  // namespace spate::libevent
