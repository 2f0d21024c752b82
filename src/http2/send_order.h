// SendOrder: the streams that can send, in the order of RFC 9218 §10: by urgency; incremental ones
// of an urgency in turn, the others in the order of their arrival, one after the other.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "http2/stream_state.h"

namespace spate::http {

class SendOrder {
 public:
  // Adds or removes the stream, as it can send or not. To be called after each change of that.
  void update(StreamState& stream) {
    const bool is_listed = SendingStreams::is_linked(stream);
    if (stream.can_send() == is_listed) return;
    is_listed ? remove(stream) : append(stream);
  }
  void remove(StreamState& stream);
  void set_priority(StreamState& stream, Http2Priority priority);

  // Returns the next stream; nullptr if none can send.
  StreamState* first() const {
    return used_ == 0 ? nullptr : lists_[static_cast<std::size_t>(std::countr_zero(used_))].first();
  }
  // To be called after `stream` has sent a frame.
  void note_sent(StreamState& stream);

 private:
  void append(StreamState& stream);

  std::array<SendingStreams, Http2Priority::kUrgencies> lists_;
  unsigned used_ = 0;  // Has a bit for each list that is not empty.
};

}  // namespace spate::http
