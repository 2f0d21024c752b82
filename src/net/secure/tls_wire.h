// TlsWire: ciphertext that passes by an engine during one call: what has come from the peer, and
// what is to go to it. Nothing is refused but for want of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "net/stream/unread.h"
#include "spate/net/bytes.h"

namespace spate {

class TlsWire {
 public:
  // What goes out is put into `room`, and what it has no room for behind what is in `rest` already.
  TlsWire(Bytes in, std::span<std::byte> room, Unread& rest) : in_(in), room_(room), rest_(rest) {}

  // ---- the engine's side

  std::size_t take(std::span<std::byte> into) {
    const std::size_t count = std::min(into.size(), in_.size());
    if (count > 0) std::memcpy(into.data(), in_.data(), count);
    in_ = in_.subspan(count);
    return count;
  }
  // False when memory runs out.
  bool put(Bytes bytes) {
    if (rest_.empty() && bytes.size() <= room_.size() - used_) {
      std::memcpy(room_.data() + used_, bytes.data(), bytes.size());
      used_ += bytes.size();
      return true;
    }
    if (rest_.append(take_out()) && rest_.append(bytes)) return true;
    is_out_of_memory_ = true;
    return false;
  }
  bool is_out_of_memory() const { return is_out_of_memory_; }

  // ---- the transport's side

  void feed(Bytes in) { in_ = in; }
  // What has not been taken.
  Bytes in() const { return in_; }
  // What was put into the room, which is empty then.
  Bytes take_out() { return room_.first(std::exchange(used_, 0)); }

 private:
  Bytes in_;
  std::span<std::byte> room_;
  std::size_t used_ = 0;
  Unread& rest_;
  bool is_out_of_memory_ = false;
};

}  // namespace spate
