#include "compat/libevent/http/message.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "compat/libevent/ascii.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

struct Method {
  std::string_view name;
  evhttp_cmd_type type;
};

constexpr Method kMethods[] = {
    {"GET", EVHTTP_REQ_GET},     {"POST", EVHTTP_REQ_POST},     {"HEAD", EVHTTP_REQ_HEAD},
    {"PUT", EVHTTP_REQ_PUT},     {"DELETE", EVHTTP_REQ_DELETE}, {"OPTIONS", EVHTTP_REQ_OPTIONS},
    {"TRACE", EVHTTP_REQ_TRACE}, {"PATCH", EVHTTP_REQ_PATCH},   {"CONNECT", EVHTTP_REQ_CONNECT},
};

constexpr std::string_view kShortestRequestLine = "GET / HTTP/1.0";
constexpr std::size_t kLengthDigits = 18;  // So many digits always fit.
constexpr std::size_t kSizeDigits = 15;
constexpr int kCodeMost = 999'999;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool contains(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

bool is_equal(std::string_view one, std::string_view other) {
  return one.size() == other.size() &&
         evutil_ascii_strncasecmp(one.data(), other.data(), one.size()) == 0;
}

constexpr bool is_mark(char c) {
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

constexpr auto kTokenCharacters = [] {
  std::array<bool, 256> is_one{};
  for (int c = 0; c < 256; ++c) {
    const char character = static_cast<char>(c);
    is_one[static_cast<std::size_t>(c)] =
        is_digit(character) || is_letter(character) || is_mark(character);
  }
  return is_one;
}();

// Returns true for a valid header name (RFC 9110 §5.1).
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return kTokenCharacters[static_cast<unsigned char>(c)];
  });
}

std::optional<std::int64_t> parse_number(std::string_view text, std::size_t most_digits) {
  if (text.empty()) return {};
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  if (text.size() > most_digits) return {};
  std::int64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return {};
    value = value * 10 + (c - '0');
  }
  return value;
}

// Parses "HTTP/" digit "." digit, of HTTP/1 or older.
std::optional<Version> parse_version(std::string_view text) {
  if (text.size() != 8 || !text.starts_with("HTTP/") || text[6] != '.') return {};
  if ((text[5] != '0' && text[5] != '1') || !is_digit(text[7])) return {};
  return Version{text[5] - '0', text[7] - '0'};
}

// Removes the first element of a comma-separated list, and returns it.
std::string_view next_element(std::string_view& list) {
  const std::size_t comma = list.find(',');
  const std::string_view element = list.substr(0, comma);
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return without_blanks(element);
}

std::string_view coding_in(std::string_view element) {
  return element.substr(0, element.find_first_of("; \t"));
}

struct Codings {
  bool are_there = false;
  bool is_chunked = false;
  bool are_right = true;
};

// "chunked" may occur once, as the last one.
void note_codings(Codings& codings, std::string_view list) {
  codings.are_there = true;
  do {
    const bool has_more = contains(list, ',');
    const bool was_chunked = codings.is_chunked;
    codings.is_chunked |= is_equal(coding_in(next_element(list)), "chunked");
    if (was_chunked) codings.are_right = false;
    if (!has_more) return;
    if (codings.is_chunked && list.empty()) codings.are_right = false;
  } while (!list.empty());
}

bool append_to_last(evkeyvalq& headers, std::string_view more) {
  evkeyval* last = TAILQ_LAST(&headers, evkeyvalq);
  if (last == nullptr) return false;
  const std::size_t size = std::strlen(last->value);
  auto* value = static_cast<char*>(reallocate(last->value, size + 1 + more.size() + 1));
  if (value == nullptr) return false;
  value[size] = ' ';
  if (!more.empty()) std::memcpy(value + size + 1, more.data(), more.size());
  value[size + 1 + more.size()] = 0;
  last->value = value;
  return true;
}

}  // namespace

std::optional<RequestLine> parse_request_line(std::string_view line) {
  while (line.ends_with(' ')) line.remove_suffix(1);
  if (line.size() < kShortestRequestLine.size()) return {};
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first + 1) return {};
  const auto version = parse_version(line.substr(last + 1));
  if (!version || contains(line, '\0')) return {};
  return RequestLine{line.substr(0, first), line.substr(first + 1, last - first - 1), *version};
}

std::optional<StatusLine> parse_status_line(std::string_view line) {
  if (contains(line, '\0')) return {};
  const std::size_t space = line.find(' ');
  const auto version = parse_version(line.substr(0, space));
  if (!version || space == std::string_view::npos) return {};
  const std::string_view rest = line.substr(space + 1);
  const std::size_t end = rest.find(' ');
  const auto code = parse_number(rest.substr(0, end), kLengthDigits);
  if (!code || *code == 0 || *code > kCodeMost) return {};
  const auto reason = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return StatusLine{*version, static_cast<int>(*code), reason};
}

int method_of(std::string_view name) {
  for (const Method& method : kMethods) {
    if (method.name == name) return method.type;
  }
  return 0;
}

const char* name_of(evhttp_cmd_type method) {
  for (const Method& known : kMethods) {
    if (known.type == method) return known.name.data();
  }
  return "NULL";
}

std::optional<FieldLine> parse_field_line(std::string_view line) {
  if (contains(line, '\r') || contains(line, '\0')) return {};
  if (is_blank(line.front())) return FieldLine{true, {}, without_blanks(line)};
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return {};
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
  return FieldLine{false, line.substr(0, colon), value};
}

bool add_header_line(evkeyvalq& headers, std::string_view line) {
  const auto field = parse_field_line(line);
  if (!field) return false;
  if (field->goes_on) return append_to_last(headers, field->value);
  return add_header(headers, field->name, field->value) == 0;
}

std::optional<Framing> framing_of(const evkeyvalq& headers) {
  Codings codings;
  std::optional<std::int64_t> length;
  const evkeyval* header;
  TAILQ_FOREACH(header, &headers, next) {
    if (has_equal_text(header->key, "Transfer-Encoding")) {
      note_codings(codings, header->value);
    } else if (has_equal_text(header->key, "Content-Length")) {
      const auto value = parse_number(header->value, kLengthDigits);
      if (!value || (length && *length != *value)) return {};
      length = value;
    }
  }
  if (!codings.are_right || (codings.are_there && length)) return {};
  if (codings.is_chunked) return Framing{true, -1};
  if (length) return Framing{false, *length};
  const char* connection = evhttp_find_header(&headers, "Connection");
  const bool says_none = connection != nullptr && !has_equal_text(connection, "close");
  return Framing{false, says_none && !codings.are_there ? 0 : -1};
}

std::optional<Framing> request_framing_of(const evkeyvalq& headers) {
  const auto framing = framing_of(headers);
  if (!framing || framing->is_chunked) return framing;
  if (evhttp_find_header(&headers, "Transfer-Encoding") != nullptr) return {};
  return framing;
}

std::optional<std::int64_t> parse_chunk_size(std::string_view line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  if (line.empty()) return {};
  while (line.size() > 1 && line.front() == '0') line.remove_prefix(1);
  if (line.size() > kSizeDigits) return {};
  std::int64_t size = 0;
  for (const char c : line) {
    if (!is_hex_digit(c)) return {};
    size = size * 16 + hex_value(c);
  }
  return size;
}

bool is_kept_alive(const evkeyvalq& headers) {
  constexpr std::string_view kKeepAlive = "keep-alive";
  const char* value = evhttp_find_header(&headers, "Connection");
  return value != nullptr &&
         evutil_ascii_strncasecmp(value, kKeepAlive.data(), kKeepAlive.size()) == 0;
}

bool closes_connection(const evhttp_request& request, const evkeyvalq& headers) {
  if ((request.flags & EVHTTP_PROXY_REQUEST) != 0) {
    const char* value = evhttp_find_header(&headers, "Proxy-Connection");
    return value == nullptr || !has_equal_text(value, "keep-alive");
  }
  const char* value = evhttp_find_header(&headers, "Connection");
  return value != nullptr && has_equal_text(value, "close");
}

}  // namespace spate::libevent
