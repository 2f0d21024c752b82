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
#include "http/codec/http2_session.h"
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
  struct Part {
    std::size_t at = 0;
    std::size_t size = 0;
  };
  Part put(std::string_view text);
  std::string_view view(Part part) const {
    return std::string_view(text_).substr(part.at, part.size);
  }
  void add_field(std::string_view name, std::string_view value, const HeadLimits& limits,
                 RequestHead& head);
  void ask_upgrade(const HeadLimits& limits, RequestHead& head);
  bool has_room(std::size_t size, const HeadLimits& limits) const;

  std::string text_;
  std::string cookies_;
  Part method_;
  Part path_;
  Part authority_;
  Part protocol_;
  std::size_t count_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t repeated_ = 0;
  bool is_too_long_ = false;
  bool is_ambiguous_ = false;  // Host is another than :authority.
};

}  // namespace spate::http
