#include "http/server/header_section.h"

#include "http/codec/request_check.h"

namespace spate::http {

Parsed HeaderSection::parse(Bytes bytes, const HeadLimits& limits) {
  const Parsed parsed = parse_request(bytes, looked_at_, limits, head_);
  text_ = reinterpret_cast<const char*>(bytes.data());
  looked_at_ = parsed.looked_at;
  return parsed;
}

Refusal HeaderSection::finish(Http2Head& fields, const HeadLimits& limits) {
  const Refusal refusal = fields.finish(limits, head_);
  text_ = fields.text();
  return refusal;
}

Refusal HeaderSection::check() { return check_request(*view_, target_); }

bool HeaderSection::keep() {
  if (!kept_.empty()) return true;
  if (!kept_.copy(text_, head_)) return false;
  view_ = &kept_.view();
  check();  // The target refers to the copy from now on.
  return true;
}

void HeaderSection::forget() {
  static_cast<RequestView&>(head_) = {.method = head_.method};
  target_ = {};
  view_ = &head_;
}

void HeaderSection::stand_in() {
  head_.method = Method::get;
  head_.method_name = name_of(Method::get);
}

void HeaderSection::clear() {
  forget();
  head_.method = Method::other;
  looked_at_ = 0;
  kept_.clear();
}

}  // namespace spate::http
