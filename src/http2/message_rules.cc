#include "http2/message_rules.h"

#include <algorithm>
#include <charconv>

#include "http/codec/characters.h"

namespace spate::http {

void MessageRules::note_request(std::string_view method) {
  if (method == "CONNECT") set(kIsConnect);
  if (method == "HEAD") set(kIsHead);
}

Verdict MessageRules::take_field(const HpackField& field, SectionKind kind) {
  const auto report_if = [](bool is_good) {
    return is_good ? Verdict::report : Verdict::malformed;
  };
  const FieldKind of = field.trait.kind;
  if (!field.trait.is_valid || of == FieldKind::forbidden) return Verdict::malformed;
  if (is_pseudo(of)) return report_if(!has(kFieldSeen) && take_pseudo(field, kind));
  set(kFieldSeen);
  switch (of) {
    case FieldKind::host:
      return report_if(status_ != 0 || set_once(kHost, field.value));
    case FieldKind::content_length:
      return take_length(field.value);
    case FieldKind::te:
      return report_if(equal_ignoring_case(field.value, "trailers"));
    default:
      return Verdict::report;
  }
}

bool MessageRules::take_pseudo(const HpackField& field, SectionKind kind) {
  if (kind == SectionKind::trailers) return false;
  const bool is_of_request = field.trait.kind != FieldKind::status;
  if (is_of_request != (kind == SectionKind::request)) return false;
  switch (field.trait.kind) {
    case FieldKind::method:
      return take_method(field.value);
    case FieldKind::scheme:
      return take_scheme(field.value);
    case FieldKind::path:
      return take_path(field.value);
    case FieldKind::authority:
      return set_once(kAuthority, field.value);
    case FieldKind::protocol:
      return set_once(kProtocol, field.value);
    default:
      return take_status(field.value);
  }
}

bool MessageRules::set_once(Flag flag, std::string_view value) {
  if (has(flag) || value.empty()) return false;
  set(flag);
  return true;
}

bool MessageRules::take_method(std::string_view value) {
  if (!set_once(kMethod, value)) return false;
  if (value == "CONNECT") set(kIsConnect);
  if (value == "OPTIONS") set(kIsOptions);
  return true;
}

bool MessageRules::take_scheme(std::string_view value) {
  if (!set_once(kScheme, value)) return false;
  if (equal_ignoring_case(value, "http") || equal_ignoring_case(value, "https")) set(kIsHttp);
  return true;
}

bool MessageRules::take_path(std::string_view value) {
  if (!set_once(kPath, value)) return false;
  if (value.front() == '/') set(kPathIsRooted);
  if (value == "*") set(kPathIsStar);
  return true;
}

bool MessageRules::take_status(std::string_view value) {
  constexpr std::int16_t kLeast = 100;
  constexpr std::int16_t kSwitching = 101;  // HTTP/2 has no 101.
  std::int16_t status = 0;
  if (status_ != 0 || value.size() != 3 || !std::ranges::all_of(value, is_digit)) return false;
  for (const char digit : value) status = static_cast<std::int16_t>(status * 10 + (digit - '0'));
  status_ = status;
  return status >= kLeast && status != kSwitching;
}

// Responses without a body have no length, except that some servers send 0 with a 204.
Verdict MessageRules::take_length(std::string_view value) {
  constexpr std::int16_t kNoContent = 204;
  std::int64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  const bool is_number = error == std::errc() && end == value.data() + value.size() &&
                         std::ranges::all_of(value, is_digit);
  const bool has_no_length = status_ / 100 == 1 || (status_ == kNoContent && length != 0);
  if (has_no_length) return Verdict::malformed;
  if (status_ / 100 == 2 && status_ != kNoContent && has(kIsConnect)) return Verdict::drop;
  if (!is_number || length_ != kNoLength) return Verdict::malformed;
  length_ = length;
  return status_ == kNoContent ? Verdict::drop : Verdict::report;
}

bool MessageRules::end_section(SectionKind kind, bool is_last) {
  if (kind == SectionKind::trailers) return is_last;
  return kind == SectionKind::request ? end_request() : end_response();
}

bool MessageRules::end_request() {
  if (has(kIsConnect) && !has(kProtocol)) {
    length_ = kNoLength;
    return has(kAuthority) && !has(kScheme | kPath);
  }
  if (!has_all(kMethod | kScheme | kPath) || !has(kAuthority | kHost)) return false;
  if (has(kProtocol) && !has_all(kIsConnect | kAuthority)) return false;
  return !has(kIsHttp) || has(kPathIsRooted) || has_all(kIsOptions | kPathIsStar);
}

bool MessageRules::end_response() {
  constexpr std::int16_t kNoContent = 204;
  constexpr std::int16_t kNotModified = 304;
  if (status_ == 0) return false;
  flags_ = static_cast<std::uint16_t>(flags_ & (kIsConnect | kIsHead));
  if (status_ / 100 == 1) {
    set(kAwaitsFinal);
    length_ = kNoLength;
    status_ = 0;
    return true;
  }
  if (has(kIsHead) || status_ == kNoContent || status_ == kNotModified)
    length_ = 0;
  else if (has(kIsConnect))
    length_ = kNoLength;
  return true;
}

bool MessageRules::take_body(std::size_t size) {
  received_ += static_cast<std::int64_t>(size);
  return !has(kAwaitsFinal) && (length_ == kNoLength || received_ <= length_);
}

bool MessageRules::take_end() const {
  return !has(kAwaitsFinal) && (length_ == kNoLength || received_ == length_);
}

}  // namespace spate::http
