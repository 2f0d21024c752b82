// WebSocket frames (RFC 6455 §5.2): parsing and formatting of their headers, and the contents of a
// close frame.
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

// The side of a connection. A client masks its frames.
enum class WebSocketRole : std::uint8_t { server, client };

inline constexpr std::size_t kMostFrameHead = 14;
inline constexpr std::size_t kMostControl = 125;  // Bytes of a control frame's payload.

struct FrameHead {
  Opcode opcode = Opcode::continuation;
  bool is_last = true;         // The last frame of its message.
  bool is_compressed = false;  // The message is compressed (RFC 7692 §6).
  bool is_masked = false;
  Mask mask{};
  std::uint64_t size = 0;     // Bytes of the payload.
  std::size_t head_size = 0;  // Bytes of the header.
};

enum class FrameState : std::uint8_t { unfinished, whole, broken };

// Parses the header at the front of `bytes`. `broken` if no frame of either side can begin so. The
// order of frames is not checked.
FrameState read_frame_head(Bytes bytes, FrameHead& head);

// Formats a header in the shortest form. Returns its size: at most kMostFrameHead.
std::size_t write_frame_head(const FrameHead& head, std::byte* to);

// The contents of a close frame; the reason is UTF-8.
struct CloseSaid {
  CloseCode code = CloseCode::no_code;
  std::string_view reason{};
};
// Parses a close frame's payload. Returns nullopt for a single byte, or a code that must not be
// sent. The reason is not checked.
std::optional<CloseSaid> read_close(Bytes payload);

}  // namespace spate::http
