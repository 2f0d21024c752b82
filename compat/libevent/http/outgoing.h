// The lines of a header section, gathered before they go into a buffer.
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

  // Hands over the rest. False if memory ran out: then the buffer has only a part of the text.
  [[nodiscard]] bool end() {
    flush();
    return is_whole_;
  }

  template <class... Texts>
  void add(const Texts&... texts) {
    const std::string_view views[] = {texts...};
    for (const std::string_view text : views) add_one(text);
  }
  void add_version(Version version);
  // Adds the headers, and the empty line after them.
  void add_headers(const evkeyvalq& headers);

 private:
  void add_one(std::string_view text) {
    if (text.size() > sizeof bytes_ - size_) flush();
    if (text.size() > sizeof bytes_) return pass_on(text.data(), text.size());
    std::memcpy(bytes_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void flush() {
    if (size_ != 0) pass_on(bytes_, size_);
    size_ = 0;
  }
  void pass_on(const char* bytes, std::size_t size) {
    is_whole_ = is_whole_ && evbuffer_add(target_, bytes, size) == 0;
  }

  evbuffer* target_;
  std::size_t size_ = 0;
  bool is_whole_ = true;
  char bytes_[1000];
};

}  // namespace spate::libevent
