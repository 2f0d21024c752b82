// Http2Head: the head of a request of HTTP/2, put together in the form that those of HTTP/1 have:
// one text, and entries that refer to it. What is asked for by :authority is its Host.
//
// One is filled at a time, as the fields of a connection's heads never mix.
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
  // Fields beyond the limits are not kept, and finish() says so.
  void add(std::string_view name, std::string_view value, const HeadLimits& limits,
           RequestHead& head);
  // The head is whole. Or what to answer.
  Refusal finish(const HeadLimits& limits, RequestHead& head);
  // Of the last one that is whole; its views refer to it until the next begins.
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
  bool is_ambiguous_ = false;  // Host is another than :authority.
};

}  // namespace spate::http
