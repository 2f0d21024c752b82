// HeaderSection: the header section of a request. It refers to text of its connection, until keep()
// copies that.
#pragma once

#include <cstddef>
#include <string_view>

#include "http/codec/head.h"
#include "http/codec/refusal.h"
#include "http/codec/target.h"
#include "http/server/http2_head.h"

namespace spate::http {

class HeaderSection {
 public:
  HeaderSection() = default;
  HeaderSection(const HeaderSection&) = delete;
  HeaderSection& operator=(const HeaderSection&) = delete;

  // ---- receiving it

  // HTTP/1: parses `bytes`, which begin with it. If it is incomplete, they are passed in again with
  // more, and are not scanned again.
  Parsed parse(Bytes bytes, const HeadLimits& limits);
  // HTTP/2: adds a field.
  void add(Http2Head& fields, std::string_view name, std::string_view value,
           const HeadLimits& limits) {
    fields.add(name, value, limits, head_);
  }
  // HTTP/2: completes it. Returns the error response, if any.
  Refusal finish(Http2Head& fields, const HeadLimits& limits);
  // Checks the fields and the target, and sets target(). Returns the error response, if any.
  Refusal check();

  // ---- its contents

  const RequestView& view() const { return *view_; }
  const RequestTarget& target() const { return target_; }
  // Returns the bytes of HTTP/1.
  std::size_t size() const { return head_.size; }

  // ---- its lifetime

  // Copies the text, before it becomes invalid. False when memory runs out.
  bool keep();
  // Replaces a header section that cannot be parsed by an empty one. The method stays, because the
  // response to HEAD has no body.
  void forget();
  // Becomes that of a GET without a target.
  void stand_in();
  void clear();

 private:
  RequestHead head_;
  const char* text_ = nullptr;  // The text that head_ refers to.
  RequestTarget target_;
  std::size_t looked_at_ = 0;         // Scanned bytes of an incomplete header section.
  const RequestView* view_ = &head_;  // Points to head_, or to the copy.
  HeadCopy<RequestView> kept_;
};

}  // namespace spate::http
