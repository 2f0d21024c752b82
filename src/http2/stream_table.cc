#include "http2/stream_table.h"

#include <new>

namespace spate::http {

StreamTable::~StreamTable() {
  for_each([](StreamState& stream) { delete &stream; });
}

StreamState* StreamTable::add(std::int32_t id, Http2Stream* user, std::int32_t window) {
  if (size_ >= slots_.size() && !grow()) return nullptr;
  auto* const stream = new (std::nothrow) StreamState(id, user, window);
  if (stream == nullptr) return nullptr;
  StreamState*& slot = slots_[slot_of(id)];
  stream->next_of_slot = slot;
  slot = stream;
  ++size_;
  return last_ = stream;
}

void StreamTable::remove(StreamState& stream) {
  StreamState** place = &slots_[slot_of(stream.id)];
  while (*place != &stream) place = &(*place)->next_of_slot;
  *place = stream.next_of_slot;
  if (last_ == &stream) last_ = nullptr;
  --size_;
  delete &stream;
}

bool StreamTable::grow() {
  constexpr std::size_t kFewest = 8;
  Array<StreamState*> larger;
  if (!larger.grow_with_zeros(slots_.empty() ? kFewest : slots_.size() * 2)) return false;
  larger.swap(slots_);
  for (StreamState* stream : larger) {
    while (stream != nullptr) {
      StreamState* const next = stream->next_of_slot;
      StreamState*& slot = slots_[slot_of(stream->id)];
      stream->next_of_slot = slot;
      slot = stream;
      stream = next;
    }
  }
  return true;
}

}  // namespace spate::http
