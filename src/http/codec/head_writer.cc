#include "http/codec/head_writer.h"

#include <charconv>

#include "http/codec/characters.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

constexpr std::size_t kMostDecimals = 20;

// Returns the most frequent status lines; empty for others. For 200 (OK) there is a prepared text
// with more fields.
std::string_view prepared_line(Status status) {
  switch (status) {
    case Status::no_content:
      return "HTTP/1.1 204 No Content\r\n";
    case Status::partial_content:
      return "HTTP/1.1 206 Partial Content\r\n";
    case Status::found:
      return "HTTP/1.1 302 Found\r\n";
    case Status::not_modified:
      return "HTTP/1.1 304 Not Modified\r\n";
    case Status::not_found:
      return "HTTP/1.1 404 Not Found\r\n";
    default:
      return {};
  }
}

}  // namespace

void HeadWriter::status_line(Status status) {
  SPATE_ASSERT(code_of(status) >= 100 && code_of(status) <= 999, "a status has three digits");
  const std::string_view prepared = prepared_line(status);
  if (!prepared.empty()) return put(prepared);
  put("HTTP/1.1 ");
  put_number(static_cast<std::uint64_t>(code_of(status)));
  put(" ");
  put(reason_of(status));
  put("\r\n");
}

void HeadWriter::request_line(std::string_view method, std::string_view target) {
  is_refused_ |= !is_token(method) || target.empty() || !consists_of(target, kVisible);
  put(method);
  put(" ");
  put(target);
  put(" HTTP/1.1\r\n");
}

void HeadWriter::framing(const Outgoing& outgoing, std::string_view protocol) {
  if (outgoing.announced == Announced::chunked) put("Transfer-Encoding: chunked\r\n");
  if (outgoing.announced == Announced::length) put_length(outgoing.length);
  switch (outgoing.connection) {
    case ConnectionOption::none:
      return;
    case ConnectionOption::close:
      return put("Connection: close\r\n");
    case ConnectionOption::keep_alive:
      return put("Connection: keep-alive\r\n");
    case ConnectionOption::te:
      return put("Connection: TE\r\nTE: trailers\r\n");
    case ConnectionOption::upgrade:
      put("Connection: upgrade\r\n");
      field(FieldId::upgrade, protocol);
  }
}

void HeadWriter::field(FieldName name, std::string_view value) {
  const std::string_view spelling = name.name.empty() ? name_of(name.id) : name.name;
  const bool is_named = name.id != FieldId::other || is_token(spelling);
  is_refused_ |= !is_named || !is_field_value(value);
  put_line(spelling, value);
}

void HeadWriter::fields(const Fields& fields) {
  is_refused_ |= !fields.is_complete() || fields.view().contains_any(kFramingFields);
  put(fields.lines());
}

void HeadWriter::put_line(std::string_view name, std::string_view value) {
  put(name);
  put(": ");
  put(value);
  put("\r\n");
}

void HeadWriter::put_length(std::uint64_t length) {
  constexpr std::string_view kName = "Content-Length: ";
  char line[kName.size() + kMostDecimals + 2];
  std::memcpy(line, kName.data(), kName.size());
  char* const digits = line + kName.size();
  char* end = std::to_chars(digits, digits + kMostDecimals, length).ptr;
  *end++ = '\r';
  *end++ = '\n';
  put({line, end});
}

void HeadWriter::put_number(std::uint64_t number) {
  char digits[kMostDecimals];
  put({digits, std::to_chars(digits, digits + sizeof(digits), number).ptr});
}

}  // namespace spate::http
