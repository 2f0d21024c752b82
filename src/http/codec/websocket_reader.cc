#include "http/codec/websocket_reader.h"

#include <algorithm>
#include <cerrno>

#include "http/codec/system_error.h"

namespace spate::http {

namespace {

CloseCode code_for(std::error_code error) {
  if (error == system_error(EMSGSIZE)) return CloseCode::message_too_big;
  return error == system_error(ENOMEM) ? CloseCode::internal_error : CloseCode::protocol_error;
}

}  // namespace

WebSocketReader::State WebSocketReader::next(Bytes& bytes, const WebSocketRules& rules,
                                             const Room& room) {
  if (is_over_) return State::broken;
  if (!is_in_message_) gathered_ = {};  // The message that was returned by the last call.
  for (;;) {
    if (!is_in_frame_) {
      const State state = begin_frame(bytes, rules, room);
      if (state != State::message) return state;
    }
    const State state = read_data(bytes, rules, room);
    if (state != State::unfinished || is_in_frame_) return state;
  }
}

// Begins a frame. Returns `message` for a data frame.
inline WebSocketReader::State WebSocketReader::begin_frame(Bytes& bytes,
                                                           const WebSocketRules& rules,
                                                           const Room& room) {
  FrameHead head;
  const FrameState state = read_frame_head(bytes, head);
  if (state == FrameState::unfinished) return State::unfinished;
  if (state == FrameState::broken || !may_come(head, rules)) return fail(CloseCode::protocol_error);
  if (is_control(head.opcode)) return read_control(bytes, head, room);
  if (head.opcode != Opcode::continuation) {
    is_text_ = head.opcode == Opcode::text;
    is_compressed_ = head.is_compressed;
    text_ = {};
  }
  const bool is_limited = rules.view == MessageView::whole || is_compressed_;
  if (is_limited && head.size > rules.max_message - gathered_.size())
    return fail(CloseCode::message_too_big);
  bytes = bytes.subspan(head.head_size);
  is_in_frame_ = is_in_message_ = true;
  is_last_frame_ = head.is_last;
  is_masked_ = head.is_masked;
  mask_ = head.mask;
  left_ = head.size;
  return State::message;
}

// Checks that a client masks and a server does not (§5.1), and that a message begins or continues
// only where it may (§5.4).
inline bool WebSocketReader::may_come(const FrameHead& head, const WebSocketRules& rules) const {
  if (head.is_masked != (rules.role == WebSocketRole::server)) return false;
  if (head.is_compressed && !rules.takes_compressed) return false;
  return is_control(head.opcode) || (head.opcode == Opcode::continuation) == is_in_message_;
}

// A control frame is short, and is read when it is complete.
WebSocketReader::State WebSocketReader::read_control(Bytes& bytes, const FrameHead& head,
                                                     const Room& room) {
  const auto size = static_cast<std::size_t>(head.size);
  if (bytes.size() < head.head_size + size) return State::unfinished;
  payload_ = bytes.subspan(head.head_size, size);
  is_masked_ = head.is_masked;
  mask_ = head.mask;
  payload_ = unmask(payload_, room.bytes.data());
  bytes = bytes.subspan(head.head_size + size);
  if (head.opcode == Opcode::close) return read_close_frame();
  return head.opcode == Opcode::ping ? State::ping : State::pong;
}

WebSocketReader::State WebSocketReader::read_close_frame() {
  const std::optional<CloseSaid> said = read_close(payload_);
  if (!said) return fail(CloseCode::protocol_error);
  if (!is_utf8(bytes_of(said->reason))) return fail(CloseCode::invalid_text);
  is_over_ = true;
  code_ = said->code;
  payload_ = bytes_of(said->reason);
  return State::close;
}

// Reads the available bytes of the frame. `unfinished` if they complete nothing to return.
inline WebSocketReader::State WebSocketReader::read_data(Bytes& bytes, const WebSocketRules& rules,
                                                         const Room& room) {
  const bool is_whole_here = left_ <= bytes.size() && is_last_frame_ && gathered_.empty();
  const bool is_in_parts = rules.view == MessageView::parts && !is_compressed_;
  const bool has_room = !is_masked_ || left_ <= room.bytes.size();
  if (!is_in_parts && !(is_whole_here && has_room)) return gather(bytes, rules, room);
  std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  if (is_masked_) size = std::min(size, room.bytes.size());
  const Bytes part = unmask(bytes.first(size), room.bytes.data());
  bytes = bytes.subspan(size);
  left_ -= size;
  is_in_frame_ = left_ > 0;
  const bool is_last = !is_in_frame_ && is_last_frame_;
  if (size == 0 && !is_last) return State::unfinished;
  return is_compressed_ ? inflate(part, rules, room) : show(part, is_last);
}

inline Bytes WebSocketReader::unmask(Bytes bytes, std::byte* to) {
  if (!is_masked_) return bytes;
  apply_mask(mask_, bytes, to);
  if (left_ > bytes.size()) mask_ = mask_behind(mask_, bytes.size());
  return {to, bytes.size()};
}

// Appends to the message. A text is validated as it arrives.
WebSocketReader::State WebSocketReader::gather(Bytes& bytes, const WebSocketRules& rules,
                                               const Room& room) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  if (!gathered_.reserve(gathered_.size() + size)) return fail(CloseCode::internal_error);
  Bytes part = bytes.first(size);
  if (is_masked_) {
    part = unmask(part, gathered_.end());
  } else {
    std::ranges::copy(part, gathered_.end());
  }
  gathered_.grow_reserved(size);
  bytes = bytes.subspan(size);
  left_ -= size;
  is_in_frame_ = left_ > 0;
  if (is_text_ && !is_compressed_ && !text_.add(part)) return fail(CloseCode::invalid_text);
  if (is_in_frame_ || !is_last_frame_) return State::unfinished;
  const Bytes all(gathered_.begin(), gathered_.size());
  if (is_compressed_) return inflate(all, rules, room);
  if (is_text_ && !text_.is_complete()) return fail(CloseCode::invalid_text);
  is_in_message_ = false;
  is_last_ = true;
  payload_ = all;
  return State::message;
}

WebSocketReader::State WebSocketReader::inflate(Bytes compressed, const WebSocketRules& rules,
                                                const Room& room) {
  const Result<Bytes> message = room.inflater.decompress(compressed, rules.max_message);
  if (!message) return fail(code_for(message.error()));
  return show(*message, true);
}

inline WebSocketReader::State WebSocketReader::show(Bytes bytes, bool is_last) {
  if (is_text_ && (!text_.add(bytes) || (is_last && !text_.is_complete())))
    return fail(CloseCode::invalid_text);
  is_last_ = is_last;
  is_in_message_ = !is_last;
  payload_ = bytes;
  return State::message;
}

WebSocketReader::State WebSocketReader::fail(CloseCode code) {
  is_over_ = true;
  code_ = code;
  gathered_ = {};
  payload_ = {};
  return State::broken;
}

}  // namespace spate::http
