#include "http/server/http2_head.h"

#include <algorithm>

#include "http/codec/characters.h"

namespace spate::http {

namespace {

constexpr std::string_view kHost = "host";
// What a name and a value take beside themselves: as much as of HTTP/1, ": " and CR LF.
constexpr std::size_t kOverhead = 4;

}  // namespace

void Http2Head::begin() {
  text_.clear();
  cookies_.clear();
  method_ = path_ = authority_ = protocol_ = {};
  count_ = 0;
  known_ = repeated_ = 0;
  is_too_long_ = is_ambiguous_ = false;
}

bool Http2Head::has_room(std::size_t size, const HeadLimits& limits) const {
  return text_.size() + cookies_.size() + size + kOverhead <= limits.head;
}

Http2Head::Part Http2Head::put(std::string_view text) {
  const Part part = {text_.size(), text.size()};
  text_.append(text);
  return part;
}

// Pseudo-fields come first, each once (the session sees to that). Cookies may come in crumbs (RFC
// 9113 §8.2.3).
void Http2Head::add(std::string_view name, std::string_view value, const HeadLimits& limits,
                    RequestHead& head) {
  if (!has_room(name.size() + value.size(), limits)) {
    is_too_long_ = true;
  } else if (name == ":method") {
    method_ = put(value);
  } else if (name == ":path") {
    path_ = put(value);
  } else if (name == ":protocol") {
    protocol_ = put(value);
  } else if (name == ":authority") {
    add_field(kHost, value, limits, head);
    authority_ = {text_.size() - value.size(), value.size()};
  } else if (name == kHost && (known_ & bit_of(FieldId::host)) != 0) {
    is_ambiguous_ |= !equal_ignoring_case(view(authority_), value);
  } else if (name == "cookie") {
    if (!cookies_.empty()) cookies_ += "; ";
    cookies_ += value;
  } else if (!name.starts_with(':')) {
    add_field(name, value, limits, head);
  }
}

void Http2Head::add_field(std::string_view name, std::string_view value, const HeadLimits& limits,
                          RequestHead& head) {
  if (count_ == std::min(limits.fields, head.entries.size())) {
    is_too_long_ = true;
    return;
  }
  const FieldId id = field_id_of(name);
  const Part name_part = put(name);
  const Part value_part = put(value);
  const auto narrow = [](std::size_t number) { return static_cast<std::uint16_t>(number); };
  head.entries[count_++] = {narrow(name_part.at), narrow(name_part.size), narrow(value_part.at),
                            narrow(value_part.size), id};
  const std::uint64_t bit = id == FieldId::other ? 0 : bit_of(id);
  repeated_ |= known_ & bit;
  known_ |= bit;
}

// An extended CONNECT (RFC 8441) is shown as what it stands for: HTTP/1's GET with Upgrade. So
// nobody who serves WebSockets has to know of it.
void Http2Head::ask_upgrade(const HeadLimits& limits, RequestHead& head) {
  method_ = put("GET");
  add_field("connection", "upgrade", limits, head);
  add_field("upgrade", std::string(view(protocol_)), limits, head);
}

Refusal Http2Head::finish(const HeadLimits& limits, RequestHead& head) {
  if (!cookies_.empty()) add_field("cookie", cookies_, limits, head);
  if (protocol_.size != 0) ask_upgrade(limits, head);
  head.version = Version::http_2;
  head.method_name = view(method_);
  head.method = method_of(head.method_name);
  head.target = view(head.method == Method::connect ? authority_ : path_);
  head.fields = {text_.data(), head.entries.data(), count_, known_};
  head.repeated = repeated_;
  head.size = text_.size();
  if (is_too_long_)
    return {Status::request_header_fields_too_large,
            "the head is too long, or has too many fields"};
  if (head.target.size() > limits.line) return {Status::uri_too_long, "the target is too long"};
  if (is_ambiguous_) return bad_request("Host is another than :authority");
  return {};
}

}  // namespace spate::http
