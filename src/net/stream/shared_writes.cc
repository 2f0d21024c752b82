#include "net/stream/shared_writes.h"

#include <algorithm>

namespace spate {

namespace {

// The size of a Buffer's largest blocks.
constexpr std::size_t kCapacity = 64 * 1024 - 64;

}  // namespace

// Returns the copy of known bytes. If a queue ends with the newest copy, the bytes are copied again
// after it rather than referenced: a short text that is written repeatedly, such as a line end,
// would otherwise split the queue into pieces.
const std::byte* SharedWrites::find_copy(Bytes bytes, const std::byte* end) {
  for (Known& known : known_) {
    if (!known.lies_where(bytes)) continue;
    const bool parts = known.copy != end && block_ + copies_.size() == end;
    if (parts || !known.has_copy_of(bytes)) return note(known, bytes, copy(bytes));
    expected_ = kKnown;
    return known.copy;
  }
  if (expected_ == 0) return note(oldest(), bytes, nullptr);
  --expected_;
  return note(oldest(), bytes, copy(bytes));
}

const std::byte* SharedWrites::note(Known& known, Bytes bytes, const std::byte* copy) {
  known = {bytes.data(), bytes.size(), copy, last_->since + 1};
  last_ = &known;
  return copy;
}

SharedWrites::Known& SharedWrites::oldest() {
  return *std::ranges::min_element(known_, {}, [this](const Known& known) {
    return known.since - last_->since - 1;  // The counter may wrap around.
  });
}

// Appends to the block.
const std::byte* SharedWrites::copy(Bytes bytes) {
  if (copies_.size() + bytes.size() > kCapacity) begin_block();
  const bool is_first = copies_.empty();
  const std::span<std::byte> room = copies_.reserve(is_first ? kCapacity : bytes.size());
  if (room.empty()) return nullptr;
  std::memcpy(room.data(), bytes.data(), bytes.size());
  copies_.commit(bytes.size());
  if (is_first) block_ = room.data();
  return room.data();
}

void SharedWrites::begin_block() {
  copies_.clear();
  for (Known& known : known_) known.copy = nullptr;
}

}  // namespace spate
