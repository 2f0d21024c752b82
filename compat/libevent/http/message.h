// Parsing the lines of an HTTP/1 message: pure functions of text and of lists of headers.
//
// Semantics: event2/http.h; probed on Debian's 2.1.12 with its security fixes: which lines are
// accepted, and the framing of a body.
//
// spate's own codec (src/http/codec) is not used: evhttp accepts messages that it rejects, and
// programs may rely on them (lines that end with LF, folded headers, any text as a target,
// responses without a length), and it stores headers as the program's evkeyvals. Where the
// original's leniency lets two servers see different messages in the same bytes, this one rejects
// them: docs/drop-in.md has the list.
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

// Returns 0 for an unknown method.
[[nodiscard]] int method_of(std::string_view name);
const char* name_of(evhttp_cmd_type method);

// One line of a header or trailer section.
struct FieldLine {
  bool goes_on;  // A folded line, which continues the value before; it has no name.
  std::string_view name;
  std::string_view value;
};

// Returns nothing if the line, which must not be empty, is malformed.
std::optional<FieldLine> parse_field_line(std::string_view line);

// Adds one header line, or continues the last header. Returns false if it is malformed, or without
// memory.
[[nodiscard]] bool add_header_line(evkeyvalq& headers, std::string_view line);

// How long a body is.
struct Framing {
  bool is_chunked;
  std::int64_t length;  // -1: not specified.
};

// Returns nothing if the headers contradict themselves or each other.
std::optional<Framing> framing_of(const evkeyvalq& headers);

// For a request: an encoding without a known end is rejected, too.
std::optional<Framing> request_framing_of(const evkeyvalq& headers);

// Returns the size of the next chunk; nothing if the line is not a size.
std::optional<std::int64_t> parse_chunk_size(std::string_view line);

// True if the version is 1.0, and the headers ask to keep the connection.
[[nodiscard]] bool is_kept_alive(const evkeyvalq& headers);
// True if the headers, of a request by proxy or not, close the connection.
[[nodiscard]] bool closes_connection(const evhttp_request& request, const evkeyvalq& headers);

}  // namespace spate::libevent
