// StreamTable: the streams of a session, by their id.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/array.h"
#include "http2/stream_state.h"

namespace spate::http {

class StreamTable {
 public:
  StreamTable() = default;
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;
  ~StreamTable();

  std::size_t size() const { return size_; }
  // Events of one stream usually come in a row, so the last one is cached.
  StreamState* find(std::int32_t id) const {
    if (last_ != nullptr && last_->id == id) return last_;
    StreamState* stream = slots_.empty() ? nullptr : slots_[slot_of(id)];
    while (stream != nullptr && stream->id != id) stream = stream->next_of_slot;
    if (stream != nullptr) last_ = stream;
    return stream;
  }
  // Returns nullptr when memory runs out.
  StreamState* add(std::int32_t id, Http2Stream* user, std::int32_t window);
  void remove(StreamState& stream);

  // Calls `function` for each stream, which may remove that stream.
  template <class Function>
  void for_each(Function function) {
    for (StreamState* stream : slots_) {
      while (stream != nullptr) {
        StreamState* const next = stream->next_of_slot;
        function(*stream);
        stream = next;
      }
    }
  }

 private:
  // The ids of one side are every other number.
  std::size_t slot_of(std::int32_t id) const {
    return static_cast<std::size_t>(id >> 1) & (slots_.size() - 1);
  }
  bool grow();

  Array<StreamState*> slots_;  // A power of two of them; each is a list.
  std::size_t size_ = 0;
  mutable StreamState* last_ = nullptr;
};

}  // namespace spate::http
