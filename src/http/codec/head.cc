#include "http/codec/head.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "http/codec/field_hash.h"
#include "http/codec/head_end.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

constexpr std::size_t kVersionSize = std::string_view("HTTP/1.1").size();

Refusal read_version(const char* text, Version& version) {
  const auto is = [text](const char* known) { return std::memcmp(text, known, kVersionSize) == 0; };
  version = is("HTTP/1.1") ? Version::http_1_1 : Version::http_1_0;
  if (version == Version::http_1_1 || is("HTTP/1.0")) return {};
  const bool is_other = std::memcmp(text, "HTTP/", 5) == 0 && is_digit(text[5]) && text[6] == '.' &&
                        is_digit(text[7]);
  if (!is_other) return bad_request("the version is not an HTTP version");
  if (text[5] != '1') return {Status::http_version_not_supported, "the major version is not 1"};
  // A higher minor version is treated as the highest known one (RFC 9110 §2.5).
  version = Version::http_1_1;
  return {};
}

bool is_line_end(const char* at) { return std::memcmp(at, kCrLf.data(), kCrLf.size()) == 0; }

Refusal wrong_name(char first) {
  return bad_request(is_blank(first) ? "a line begins with a blank"
                                     : "a field name is not a token followed by a colon");
}

// Parses the header section at the front of `size` bytes, which end with CR LF CR LF, so that every
// search ends within them. Vectors may read up to `readable`.
template <class Scan>
class HeadReader {
 public:
  HeadReader(const char* text, std::size_t start, std::size_t size, const char* readable)
      : text_(text), begin_(text + start), at_(begin_), end_(text + size), readable_(readable) {}

  // Returns the number of parsed bytes.
  std::size_t passed() const { return static_cast<std::size_t>(at_ - begin_); }

  Refusal request_line(RequestView& view) {
    const char* const method = at_;
    const bool is_get = std::memcmp(method, "GET ", 4) == 0;
    const char* const method_end = is_get ? method + 3 : skip(method, end_, kToken);
    if (method_end == method || *method_end != ' ')
      return bad_request("the method is not a token followed by a space");
    const char* const target = method_end + 1;
    const char* const target_end = Scan::visible_end(text_, target, readable_);
    if (target_end == target || *target_end != ' ')
      return bad_request("the target is not a run of visible characters and a space");
    at_ = target_end + 1;
    view.method_name = {method, method_end};
    view.method = is_get ? Method::get : method_of(view.method_name);
    view.target = {target, target_end};
    return request_version(view.version);
  }

  Refusal status_line(ResponseView& view) {
    constexpr std::size_t kShortest = std::string_view("HTTP/1.1 200\r\n\r\n").size();
    if (left() < kShortest) return bad_request("the status line is too short");
    if (const Refusal refusal = read_version(at_, view.version)) return refusal;
    const char* const code = at_ + kVersionSize + 1;
    if (code[-1] != ' ' || code[0] == '0' || !is_digit(code[0]) || !is_digit(code[1]) ||
        !is_digit(code[2]))
      return bad_request("the status is not a number of three digits");
    view.status =
        static_cast<Status>((code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0'));
    at_ = code + 3;
    return reason(view);
  }

  // Parses all fields. `entries` has room for `max`.
  Refusal fields(FieldEntry* entries, std::size_t max, FieldsView& fields,
                 std::uint64_t& repeated) {
    std::uint64_t known = 0;
    std::uint64_t again = 0;
    std::size_t count = 0;
    const char* at = at_;
    for (; !is_line_end(at); ++count) {
      if (count == max) return {Status::request_header_fields_too_large, "too many fields"};
      if (const Refusal refusal = field(at, entries[count])) return refusal;
      const std::uint64_t bit = bit_of(entries[count].id);
      again |= known & bit;
      known |= bit;
    }
    at_ = at;
    fields = {text_, entries, count, known & ~bit_of(FieldId::other)};
    repeated = again & ~bit_of(FieldId::other);
    return {};
  }

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint16_t offset(const char* at) const { return static_cast<std::uint16_t>(at - text_); }
  static std::uint16_t size(const char* from, const char* to) {
    return static_cast<std::uint16_t>(to - from);
  }

  Refusal request_version(Version& version) {
    if (left() < kVersionSize + kCrLf.size()) return bad_request("the version is missing");
    if (const Refusal refusal = read_version(at_, version)) return refusal;
    at_ += kVersionSize;
    if (!is_line_end(at_)) return bad_request("something follows the version");
    at_ += kCrLf.size();
    return {};
  }

  // Some servers omit the space together with the reason.
  Refusal reason(ResponseView& view) {
    if (*at_ == ' ')
      ++at_;
    else if (*at_ != '\r')
      return bad_request("the status is not a number of three digits");
    const char* const reason_end = Scan::value_end(text_, at_, readable_);
    if (!is_line_end(reason_end)) return bad_request("a control character in the reason");
    view.reason = {at_, reason_end};
    at_ = reason_end + kCrLf.size();
    return {};
  }

  // Parses the field at `at`, and moves `at` after it.
  [[gnu::always_inline]] Refusal field(const char*& at, FieldEntry& entry) const {
    const char* const name = at;
    const char* const name_end = Scan::name_end(text_, name, readable_);
    if (name_end == name || *name_end != ':') return wrong_name(*name);
    const char* value = name_end + 1;
    while (is_blank(*value)) ++value;
    const char* value_end = Scan::value_end(text_, value, readable_);
    if (!is_line_end(value_end)) return bad_request("a control character in a field's value");
    at = value_end + kCrLf.size();
    while (value_end != value && is_blank(value_end[-1])) --value_end;
    const std::uint16_t name_size = size(name, name_end);
    entry = {offset(name), name_size, offset(value), size(value, value_end),
             token_id_of(name, name_size, readable_)};
    return {};
  }

  const char* const text_;
  const char* const begin_;
  const char* at_;
  const char* const end_;
  const char* const readable_;
};

Refusal read_first_line(auto& reader, RequestView& view) { return reader.request_line(view); }
Refusal read_first_line(auto& reader, ResponseView& view) { return reader.status_line(view); }
Refusal read_first_line(auto&, TrailerView&) { return {}; }

template <class Scan, class View>
Refusal read_head(HeadReader<Scan>& reader, const HeadLimits& limits, Head<View>& head) {
  if (const Refusal refusal = read_first_line(reader, head)) return refusal;
  if (reader.passed() > limits.line + kCrLf.size())
    return {Status::uri_too_long, "the first line is too long"};
  const std::size_t max = std::min(limits.fields, head.entries.size());
  return reader.fields(head.entries.data(), max, head.fields, head.repeated);
}

// Fast path for bytes that end with an empty line: parses without searching for the end first. It
// accepts a subset of parse_from(), which decides about everything else.
template <class Scan, class View>
bool read_at_once(std::string_view text, std::size_t start, const HeadLimits& limits,
                  Head<View>& head) {
  if (!text.substr(start).ends_with("\r\n\r\n")) return false;
  HeadReader<Scan> reader(text.data(), start, text.size(), text.data() + text.size());
  if (read_head(reader, limits, head)) return false;
  head.size = start + reader.passed() + kCrLf.size();
  return head.size <= limits.head;
}

template <class Scan, class View>
Parsed parse_from(std::string_view text, std::size_t start, std::size_t looked_at,
                  const HeadLimits& limits, Head<View>& head) {
  SPATE_ASSERT(limits.head <= UINT16_MAX, "HeadLimits::head is at most 65,535");
  if (std::is_same_v<Scan, VectorScan> && read_at_once<Scan>(text, start, limits, head))
    return Parsed::whole();
  const HeadEnd end = find_head_end<Scan>(text, start, looked_at, limits);
  if (end.found.state != Parsed::State::whole) return end.found;
  HeadReader<Scan> reader(text.data(), start, end.size, text.data() + text.size());
  if (const Refusal refusal = read_head(reader, limits, head)) return Parsed::broken(refusal);
  head.size = end.size;
  return Parsed::whole();
}

// One empty line before a request is ignored (RFC 9112 §2.2).
template <class Scan>
Parsed parse_request_with(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                          RequestHead& head) {
  const std::string_view text = text_of(bytes);
  if (text.empty() || text == "\r") return Parsed::unfinished(0);
  const std::size_t start = text.starts_with(kCrLf) ? kCrLf.size() : 0;
  if (start < std::min(text.size(), limits.head) && !is_in(text[start], kToken))
    return Parsed::broken(bad_request("the method is not a token followed by a space"));
  return parse_from<Scan>(text, start, looked_at, limits, head);
}

template <class Scan>
Parsed parse_response_with(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                           ResponseHead& head) {
  const std::string_view text = text_of(bytes);
  if (text.empty()) return Parsed::unfinished(0);
  if (text[0] != 'H') return Parsed::broken({Status::bad_gateway, "the response is not HTTP/1"});
  Parsed parsed = parse_from<Scan>(text, 0, looked_at, limits, head);
  const bool has_many = parsed.refusal.status == Status::request_header_fields_too_large;
  if (has_many && limits.fields > head.entries.size() && head.entries.grow(limits.most_fields()))
    parsed = parse_from<Scan>(text, 0, looked_at, limits, head);
  if (parsed.refusal) parsed.refusal.status = Status::bad_gateway;
  return parsed;
}

}  // namespace

Parsed parse_request(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                     RequestHead& head) {
  return parse_request_with<Scan>(bytes, looked_at, limits, head);
}

Parsed parse_response(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      ResponseHead& head) {
  return parse_response_with<Scan>(bytes, looked_at, limits, head);
}

Parsed parse_trailers(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                      TrailerHead& head) {
  const std::string_view text = text_of(bytes);
  if (!text.starts_with(kCrLf)) return parse_from<Scan>(text, 0, looked_at, limits, head);
  static_cast<TrailerView&>(head) = {};
  head.size = kCrLf.size();
  return Parsed::whole();
}

Parsed parse_request_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                              RequestHead& head) {
  return parse_request_with<TableScan>(bytes, looked_at, limits, head);
}

Parsed parse_response_by_table(Bytes bytes, std::size_t looked_at, const HeadLimits& limits,
                               ResponseHead& head) {
  return parse_response_with<TableScan>(bytes, looked_at, limits, head);
}

}  // namespace spate::http
