#include "http/server/http2_head.h"

#include "http/codec/characters.h"
#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr std::string_view kHost = "host";

}  // namespace

void Http2Head::begin() {
  text_.clear();
  cookies_.clear();
  method_ = path_ = authority_ = protocol_ = {};
  is_too_long_ = is_ambiguous_ = false;
}

// Pseudo-fields come first, each once (the session checks this). Cookies may be split into several
// fields (RFC 9113 §8.2.3).
void Http2Head::add(std::string_view name, std::string_view value, const HeadLimits& limits,
                    RequestHead& head) {
  if (!text_.has_room(name.size() + value.size(), limits, cookies_.size())) {
    is_too_long_ = true;
  } else if (name == ":method") {
    method_ = text_.put(value);
  } else if (name == ":path") {
    path_ = text_.put(value);
  } else if (name == ":protocol") {
    protocol_ = text_.put(value);
  } else if (name == ":authority") {
    add_field(kHost, value, limits, head);
    authority_ = {text_.size() - value.size(), value.size()};
  } else if (name == kHost && text_.has(FieldId::host)) {
    is_ambiguous_ |= !equal_ignoring_case(text_.view(authority_), value);
  } else if (name == "cookie") {
    if (!cookies_.empty()) cookies_ += "; ";
    cookies_ += value;
  } else if (!name.starts_with(':')) {
    add_field(name, value, limits, head);
  }
}

void Http2Head::add_field(std::string_view name, std::string_view value, const HeadLimits& limits,
                          RequestHead& head) {
  if (!text_.add(name, value, limits, head.entries)) is_too_long_ = true;
}

// An extended CONNECT (RFC 8441) is presented as HTTP/1's GET with Upgrade, so that WebSocket
// servers need no code for HTTP/2.
void Http2Head::ask_upgrade(const HeadLimits& limits, RequestHead& head) {
  method_ = text_.put("GET");
  add_field("connection", "upgrade", limits, head);
  add_field("upgrade", std::string(text_.view(protocol_)), limits, head);
}

Refusal Http2Head::finish(const HeadLimits& limits, RequestHead& head) {
  if (!cookies_.empty()) add_field("cookie", cookies_, limits, head);
  if (protocol_.size != 0) ask_upgrade(limits, head);
  head.version = Version::http_2;
  head.method_name = text_.view(method_);
  head.method = method_of(head.method_name);
  head.target = text_.view(head.method == Method::connect ? authority_ : path_);
  head.fields = text_.fields(head.entries);
  head.repeated = text_.repeated();
  head.size = text_.size();
  if (is_too_long_)
    return {Status::request_header_fields_too_large,
            "the head is too long, or has too many fields"};
  if (head.target.size() > limits.line) return {Status::uri_too_long, "the target is too long"};
  if (is_ambiguous_) return bad_request("Host differs from :authority");
  if (protocol_.size != 0 && !is_protocol(text_.view(protocol_)))
    return bad_request(":protocol is not a protocol name");
  return {};
}

}  // namespace spate::http
