// Unread: contiguous bytes that a handler has not used, with room after them for the following
// ones.
#pragma once

#include <cstring>
#include <span>

#include "base/array.h"
#include "spate/net/buffer.h"

namespace spate {

class Unread {
 public:
  bool empty() const { return begin_ == bytes_.size(); }
  std::size_t size() const { return bytes_.size() - begin_; }
  Bytes bytes() const { return {bytes_.begin() + begin_, size()}; }

  // Returns room after the last byte. Empty when memory runs out.
  std::span<std::byte> reserve(std::size_t room) {
    if (bytes_.capacity() - bytes_.size() < room && begin_ > 0 && begin_ >= size()) move_to_front();
    if (!bytes_.reserve(bytes_.size() + room)) return {};
    return {bytes_.end(), room};
  }
  void commit(std::size_t count) { bytes_.shrink_to(bytes_.size() + count); }
  bool append(Bytes bytes) {
    const std::span<std::byte> room = reserve(bytes.size());
    if (room.size() < bytes.size()) return false;
    std::memcpy(room.data(), bytes.data(), bytes.size());
    commit(bytes.size());
    return true;
  }
  void consume(std::size_t count) {
    begin_ += count;
    if (empty()) *this = Unread();
  }

 private:
  // Only worthwhile if fewer bytes are moved than were consumed.
  void move_to_front() {
    const std::size_t left = size();
    std::memmove(bytes_.begin(), bytes_.begin() + begin_, left);
    bytes_.shrink_to(left);
    begin_ = 0;
  }

  Array<std::byte> bytes_;
  std::size_t begin_ = 0;
};

}  // namespace spate
