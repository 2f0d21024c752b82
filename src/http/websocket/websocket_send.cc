// The output of a WebSocket.
#include <algorithm>
#include <array>
#include <utility>

#include "http/codec/utf8.h"
#include "http/websocket/loop_websockets.h"
#include "http/websocket/websocket_group.h"
#include "http/websocket/websocket_state.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

// Payloads up to this size are copied after their frame header, to write one piece; larger ones are
// masked on the stack.
constexpr std::size_t kLargestJoined = 512;
constexpr std::size_t kLargestOnStack = 4 * 1024;
// From this size on, a frame for many sockets is appended by reference, unless it can follow a
// short queue. Otherwise the Stream would compare it with its last copy, which costs more.
constexpr std::size_t kSmallestShown = 512;
constexpr std::size_t kLargestBehind = 4 * 1024;

}  // namespace

// The Stream itself closes the connection with WhenFull::close.
bool WebSocketState::has_room_for(std::size_t size) const {
  const QueueLimits& limits = options().limits;
  if (limits.when_full == WhenFull::close) return true;
  const std::size_t queued = std::min(stream_.queued(), limits.max);
  return size + kMostFrameHead <= limits.max - queued;
}

bool WebSocketState::send(MessageKind kind, Bytes bytes) {
  if (!is_writable() || is_in_parts_ || !has_room_for(bytes.size())) return false;
  if (window_ != 0 && bytes.size() >= options().compress_from) {
    const Bytes shorter = loop_state().deflater().compress(bytes, window_);
    if (!shorter.empty()) return write_frame(opcode_of(kind), shorter, true, true);
  }
  return write_frame(opcode_of(kind), bytes, true);
}

bool WebSocketState::send(MessageKind kind, Buffer&& buffer) {
  if (!is_writable() || is_in_parts_ || !has_room_for(buffer.size())) return false;
  if (is_client_) {
    const Bytes bytes = buffer.flat(buffer.size());
    if (bytes.size() != buffer.size() || !write_frame(opcode_of(kind), bytes, true)) return false;
    buffer.clear();
    return true;
  }
  std::byte head[kMostFrameHead];
  const std::size_t head_size =
      write_frame_head({.opcode = opcode_of(kind), .size = buffer.size()}, head);
  if (!buffer.prepend({head, head_size})) return false;
  if (stream_.write(std::move(buffer))) return true;
  buffer.consume(head_size);
  return false;
}

bool WebSocketState::send_part(MessageKind kind, Bytes bytes, bool is_last) {
  if (!is_writable() || !has_room_for(bytes.size())) return false;
  if (!write_frame(is_in_parts_ ? Opcode::continuation : opcode_of(kind), bytes, is_last))
    return false;
  is_in_parts_ = !is_last;
  return true;
}

bool WebSocketState::send_shared(const Buffer& frame) {
  if (!has_room_for(frame.size())) return false;
  const std::size_t most = stream_.queued() == 0 ? kSmallestShown : kLargestBehind;
  if (frame.size() <= most) return stream_.write(frame.front());
  Buffer shown;
  return shown.append_shared(frame) && stream_.write(std::move(shown));
}

bool WebSocketState::ping(Bytes bytes) {
  SPATE_ASSERT(bytes.size() <= kMostControl, "a ping carries at most 125 bytes");
  return is_writable() && write_control(Opcode::ping, bytes);
}

bool WebSocketState::write_control(Opcode opcode, Bytes payload) {
  return write_frame(opcode, payload, true);
}

bool WebSocketState::write_close(CloseCode code, std::string_view reason) {
  SPATE_ASSERT(code == CloseCode::no_code || may_be_sent(code), "not a code that may be sent");
  SPATE_ASSERT(reason.size() <= kMostControl - 2 && is_utf8(bytes_of(reason)),
               "a reason is UTF-8 of at most 123 bytes");
  std::array<std::byte, kMostControl> text;
  const auto number = static_cast<std::uint16_t>(code);
  text[0] = static_cast<std::byte>(number >> 8);
  text[1] = static_cast<std::byte>(number & 0xff);
  const std::size_t fitting = std::min(reason.size(), kMostControl - 2);
  std::ranges::copy(bytes_of(reason.substr(0, fitting)), text.begin() + 2);
  const std::size_t size = code == CloseCode::no_code ? 0 : 2 + fitting;
  if (!write_control(Opcode::close, Bytes(text).first(size))) return false;
  has_sent_close_ = true;
  return true;
}

bool WebSocketState::write_frame(Opcode opcode, Bytes payload, bool is_last, bool is_compressed) {
  FrameHead head = {
      .opcode = opcode, .is_last = is_last, .is_compressed = is_compressed, .size = payload.size()};
  if (is_client_) return write_masked(head, payload);
  std::byte bytes[kMostFrameHead + kLargestJoined];
  const std::size_t head_size = write_frame_head(head, bytes);
  if (payload.size() <= kLargestJoined) {
    std::ranges::copy(payload, bytes + head_size);
    return stream_.write(Bytes(bytes, head_size + payload.size()));
  }
  const Bytes pieces[] = {{bytes, head_size}, payload};
  return stream_.write(pieces);
}

bool WebSocketState::write_masked(FrameHead& head, Bytes payload) {
  const std::optional<Mask> mask = loop_state().random_mask();
  if (!mask) return false;
  head.is_masked = true;
  head.mask = *mask;
  const auto write_to = [&](std::byte* to) {
    const std::size_t head_size = write_frame_head(head, to);
    apply_mask(*mask, payload, to + head_size);
    return head_size + payload.size();
  };
  if (payload.size() <= kLargestOnStack) {
    std::byte bytes[kMostFrameHead + kLargestOnStack];
    return stream_.write(Bytes(bytes, write_to(bytes)));
  }
  Buffer buffer;
  const std::span<std::byte> room = buffer.reserve(kMostFrameHead + payload.size());
  if (room.empty()) return false;
  buffer.commit(write_to(room.data()));
  return stream_.write(std::move(buffer));
}

}  // namespace spate::http
