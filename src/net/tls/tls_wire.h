// TlsWire: the ciphertext of an engine during one call: input from the peer, and output to it.
// Output fails only when memory runs out.
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
  // Output is written to `room`, and then appended to `rest`.
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
  // Returns the unused input.
  Bytes in() const { return in_; }
  // Returns the output in the room, which is empty afterwards.
  Bytes take_out() { return room_.first(std::exchange(used_, 0)); }

 private:
  Bytes in_;
  std::span<std::byte> room_;
  std::size_t used_ = 0;
  Unread& rest_;
  bool is_out_of_memory_ = false;
};

}  // namespace spate
