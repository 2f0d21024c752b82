// WebSocketReader: parses the input of one end of a WebSocket into messages. No I/O.
//
//   while ((state = reader.next(bytes, room)) != State::unfinished) ...
//
// It removes used bytes from the front of `bytes`. At `unfinished`, only an incomplete header or
// control frame is left: at most kMostFrameHead + kMostControl - 1 bytes, which must be passed in
// again with the bytes that follow. Results are views into `bytes`, into `room` or into the reader,
// valid until the next call.
// Between messages a reader holds no memory, and equals a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/array.h"
#include "http/codec/message_coding.h"
#include "http/codec/utf8.h"
#include "http/codec/websocket_frame.h"
#include "spate/http/websocket_code.h"
#include "spate/net/bytes.h"

namespace spate::http {

struct WebSocketRules {
  WebSocketRole role = WebSocketRole::server;  // The side of the reading end.
  MessageView view = MessageView::whole;
  bool takes_compressed = false;
  std::size_t max_message = 0;  // Bytes; with MessageView::parts it applies only to compressed
                                // messages.
};

class WebSocketReader {
 public:
  enum class State : std::uint8_t {
    unfinished,
    message,  // With kind() and payload(); a part unless is_last().
    ping,     // With payload(), as the next two.
    pong,
    close,   // Nothing is read after it.
    broken,  // Stays so; code() must be sent to the peer.
  };
  // Buffers needed during a call, shared by all readers of a loop.
  struct Room {
    std::span<std::byte> bytes;  // At least kMostControl.
    MessageInflater& inflater;
  };

  State next(Bytes& bytes, const WebSocketRules& rules, const Room& room);

  MessageKind kind() const { return is_text_ ? MessageKind::text : MessageKind::binary; }
  Bytes payload() const { return payload_; }
  bool is_last() const { return is_last_; }
  // Returns the received code after `close`, and the code to send after `broken`.
  CloseCode code() const { return code_; }
  // True if nothing has begun.
  bool is_at_rest() const { return !is_in_frame_ && !is_in_message_ && !is_over_; }

 private:
  State begin_frame(Bytes& bytes, const WebSocketRules& rules, const Room& room);
  State read_control(Bytes& bytes, const FrameHead& head, const Room& room);
  State read_close_frame();
  bool may_come(const FrameHead& head, const WebSocketRules& rules) const;
  State read_data(Bytes& bytes, const WebSocketRules& rules, const Room& room);
  Bytes unmask(Bytes bytes, std::byte* to);
  State gather(Bytes& bytes, const WebSocketRules& rules, const Room& room);
  State inflate(Bytes compressed, const WebSocketRules& rules, const Room& room);
  State show(Bytes bytes, bool is_last);
  State fail(CloseCode code);

  std::uint64_t left_ = 0;  // Bytes of the frame that are still to arrive.
  Mask mask_{};             // For the next of them.
  bool is_in_frame_ = false;
  bool is_masked_ = false;
  bool is_last_frame_ = false;
  bool is_in_message_ = false;
  bool is_text_ = false;
  bool is_compressed_ = false;
  bool is_last_ = false;
  bool is_over_ = false;
  Utf8Check text_;
  CloseCode code_ = CloseCode::normal;
  Array<std::byte> gathered_;  // The message under construction, or the last one returned.
  Bytes payload_;
};

}  // namespace spate::http
