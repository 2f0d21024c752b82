// SharedWrites: what is written to one connection after another is copied once for all of them.
//
// The queues that are held back show one block, in which messages lie one behind the other: so a
// message that goes to the same connections as the one before is a few more bytes of what each
// queue shows already, and leaves in the same piece.
//
// Bytes are known again by where they lie, and are then compared: their memory may hold something
// else by now. The first connection gets a copy of its own, since most writes go to one only;
// after a write that was shared, the next few messages are expected to be, too.
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

  // False, and nothing is appended: a copy of its own is as good, or memory has run out.
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

  // For a queue that ends at `end`, or is empty. nullptr: it needs one of its own.
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

  Buffer copies_;  // One piece, which is begun anew when it is full.
  const std::byte* block_ = nullptr;
  std::array<Known, kKnown> known_;
  Known* last_ = known_.data();  // The newest.
  std::uint32_t expected_ = 0;   // So many new messages are expected to be shared.
};

}  // namespace spate
