// The frames of WebSocket (RFC 6455 §5.2): their heads, read and written, and what a close frame
// says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/codec/mask.h"
#include "spate/http/websocket_code.h"
#include "spate/net/bytes.h"

namespace spate::http {

enum class Opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};
inline bool is_control(Opcode opcode) { return opcode >= Opcode::close; }
inline Opcode opcode_of(MessageKind kind) {
  return kind == MessageKind::text ? Opcode::text : Opcode::binary;
}

// What is sent by a server, and what by a client: that has a mask.
enum class WebSocketRole : std::uint8_t { server, client };

inline constexpr std::size_t kMostFrameHead = 14;
inline constexpr std::size_t kMostControl = 125;  // Bytes of a control frame, without its head.

struct FrameHead {
  Opcode opcode = Opcode::continuation;
  bool is_last = true;         // Of the frames of its message.
  bool is_compressed = false;  // The message (RFC 7692 §6).
  bool is_masked = false;
  Mask mask{};
  std::uint64_t size = 0;     // Bytes that follow.
  std::size_t head_size = 0;  // Of the head itself.
};

enum class FrameState : std::uint8_t { unfinished, whole, broken };

// The head at the front of `bytes`. Broken is what no frame begins with, whoever has sent it;
// whether it may come now is not looked at.
FrameState read_frame_head(Bytes bytes, FrameHead& head);

// Writes one, in as few bytes as it takes. Returns how many: at most kMostFrameHead.
std::size_t write_frame_head(const FrameHead& head, std::byte* to);

// What a close frame says; its text is UTF-8.
struct CloseSaid {
  CloseCode code = CloseCode::no_code;
  std::string_view reason{};
};
// None: a byte alone, or a code that is not to be sent. The text is not looked at.
std::optional<CloseSaid> read_close(Bytes payload);

}  // namespace spate::http
