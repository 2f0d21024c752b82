// What is written: the lines of a head, gathered before they go into a buffer.
#pragma once

#include <charconv>
#include <cstring>
#include <string_view>

#include "compat/libevent/http/message.h"

namespace spate::libevent {

// The text of a number.
class Decimal {
 public:
  template <class Number>
  explicit Decimal(Number number) : end_(std::to_chars(text_, text_ + sizeof text_, number).ptr) {}
  Decimal(const Decimal&) = delete;
  Decimal& operator=(const Decimal&) = delete;

  operator std::string_view() const { return {text_, static_cast<std::size_t>(end_ - text_)}; }

 private:
  char text_[24];
  const char* end_;
};

class Outgoing {
 public:
  explicit Outgoing(evbuffer* target) : target_(target) {}
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;
  ~Outgoing() { flush(); }

  template <class... Texts>
  void add(const Texts&... texts) {
    const std::string_view views[] = {texts...};
    for (const std::string_view text : views) add_one(text);
  }
  void add_version(Version version);
  // With the empty line behind them.
  void add_headers(const evkeyvalq& headers);

 private:
  void add_one(std::string_view text) {
    if (text.size() > sizeof bytes_ - size_) flush();
    if (text.size() > sizeof bytes_) {
      evbuffer_add(target_, text.data(), text.size());
      return;
    }
    std::memcpy(bytes_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void flush() {
    if (size_ != 0) evbuffer_add(target_, bytes_, size_);
    size_ = 0;
  }

  evbuffer* target_;
  std::size_t size_ = 0;
  char bytes_[1000];
};

}  // namespace spate::libevent
