// WebSocketReader: what one end of a WebSocket receives, from bytes to messages. No I/O.
//
//   while ((state = reader.next(bytes, room)) != State::unfinished) ...
//
// It removes from the front of `bytes` what it has used: at `unfinished` all but the beginning of a
// head or of a control frame, at most kMostFrameHead + kMostControl - 1 bytes, which are to be
// given again with what follows. What it shows lies in `bytes`, in `room` or in itself, up to the
// next call.
// One that is at rest holds no memory, and is as good as a new one.
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
  WebSocketRole role = WebSocketRole::server;  // Of the end that reads.
  MessageView view = MessageView::whole;
  bool takes_compressed = false;
  std::size_t max_message = 0;  // Bytes; of one that is shown in parts, only while compressed.
};

class WebSocketReader {
 public:
  enum class State : std::uint8_t {
    unfinished,
    message,  // With kind() and payload(); or a part of one, unless it is_last().
    ping,     // With payload(), and so are the next two.
    pong,
    close,   // Nothing is read behind it.
    broken,  // And remains so: code() is what the other side is to be told.
  };
  // What is used for the length of a call, for all readers of a loop.
  struct Room {
    std::span<std::byte> bytes;  // At least kMostControl.
    MessageInflater& inflater;
  };

  State next(Bytes& bytes, const WebSocketRules& rules, const Room& room);

  MessageKind kind() const { return is_text_ ? MessageKind::text : MessageKind::binary; }
  Bytes payload() const { return payload_; }
  bool is_last() const { return is_last_; }
  // After `close`, what was said, and after `broken` why.
  CloseCode code() const { return code_; }
  // Nothing has begun.
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

  std::uint64_t left_ = 0;  // Bytes of the frame that are to come.
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
  Array<std::byte> gathered_;  // Of the message, or what was shown last.
  Bytes payload_;
};

}  // namespace spate::http
