// SharedWrites: copies bytes once if they are written to several connections in succession.
//
// The corked queues refer to one block, in which the messages are contiguous. So the next message
// to the same connections only extends the piece that each queue already refers to, and is sent in
// the same piece.
//
// Bytes are recognized by their address and then compared, because their memory may have other
// contents by then. The first connection gets its own copy, since most writes go to one connection
// only. After a write that was shared, the next few messages are expected to be shared, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "spate/net/buffer.h"

namespace spate {

class SharedWrites {
 public:
  static constexpr std::size_t kLargest = 4 * 1024;

  SharedWrites() = default;
  SharedWrites(const SharedWrites&) = delete;
  SharedWrites& operator=(const SharedWrites&) = delete;

  // Appends to `queue`. False, with nothing appended, if an own copy is as good, or when memory
  // runs out.
  bool append_to(Buffer& queue, Bytes bytes) {
    if (bytes.size() > kLargest) return false;
    const Bytes shown = queue.back();
    const std::byte* copy = copy_of(bytes, shown.data() + shown.size());
    return copy != nullptr &&
           queue.append_shared(copies_, static_cast<std::size_t>(copy - block_), bytes.size());
  }

 private:
  // Messages are often written in several pieces, to each connection in turn.
  static constexpr std::size_t kKnown = 8;

  struct Known {
    bool lies_where(Bytes bytes) const { return data == bytes.data() && size == bytes.size(); }
    bool has_copy_of(Bytes bytes) const {
      return copy != nullptr && std::memcmp(copy, bytes.data(), bytes.size()) == 0;
    }

    const std::byte* data = nullptr;
    std::size_t size = 0;
    const std::byte* copy = nullptr;
    std::uint32_t since = 0;  // The greatest is the newest.
  };

  // Returns the copy for a queue that ends at `end`, or is empty (nullptr). nullptr: it needs its
  // own copy.
  const std::byte* copy_of(Bytes bytes, const std::byte* end) {
    const bool goes_on = end == last_->copy || end == nullptr;
    if (!goes_on || !last_->lies_where(bytes) || !last_->has_copy_of(bytes))
      return find_copy(bytes, end);
    expected_ = kKnown;
    return last_->copy;
  }
  const std::byte* find_copy(Bytes bytes, const std::byte* end);
  Known& oldest();
  const std::byte* note(Known& known, Bytes bytes, const std::byte* copy);
  const std::byte* copy(Bytes bytes);
  void begin_block();

  Buffer copies_;  // One piece; replaced when it is full.
  const std::byte* block_ = nullptr;
  std::array<Known, kKnown> known_;
  Known* last_ = known_.data();  // The newest.
  std::uint32_t expected_ = 0;   // How many new messages are expected to be shared.
};

}  // namespace spate
