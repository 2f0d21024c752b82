#include "http2/send_order.h"

namespace spate::http {

void SendOrder::append(StreamState& stream) {
  lists_[stream.priority.urgency].push_back(stream);
  used_ |= 1u << stream.priority.urgency;
}

void SendOrder::remove(StreamState& stream) {
  if (!SendingStreams::is_linked(stream)) return;
  SendingStreams::remove(stream);
  if (lists_[stream.priority.urgency].empty()) used_ &= ~(1u << stream.priority.urgency);
}

void SendOrder::set_priority(StreamState& stream, Http2Priority priority) {
  remove(stream);
  stream.priority = priority;
  update(stream);
}

void SendOrder::note_sent(StreamState& stream) {
  if (!stream.priority.is_incremental || !SendingStreams::is_linked(stream)) return;
  remove(stream);
  append(stream);
}

}  // namespace spate::http
