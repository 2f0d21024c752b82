// Http2Head: assembles the header section of an HTTP/2 request in the format of HTTP/1: one text,
// and entries that refer to it. The :authority becomes the Host.
//
// One per connection suffices, because the header sections of a connection are never interleaved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/codec/head.h"
#include "http/codec/http2_text.h"
#include "http/codec/refusal.h"

namespace spate::http {

class Http2Head {
 public:
  void begin();
  // Drops fields beyond the limits; finish() then returns the error.
  void add(std::string_view name, std::string_view value, const HeadLimits& limits,
           RequestHead& head);
  // Completes the header section. Returns the error response, if any.
  Refusal finish(const HeadLimits& limits, RequestHead& head);
  // Returns the text of the last complete one; its views are valid until the next begin().
  const char* text() const { return text_.data(); }

 private:
  using Part = Http2Text::Part;
  void add_field(std::string_view name, std::string_view value, const HeadLimits& limits,
                 RequestHead& head);
  void ask_upgrade(const HeadLimits& limits, RequestHead& head);

  Http2Text text_;
  std::string cookies_;
  Part method_;
  Part path_;
  Part authority_;
  Part protocol_;
  bool is_too_long_ = false;
  bool is_ambiguous_ = false;  // Host differs from :authority.
};

}  // namespace spate::http
