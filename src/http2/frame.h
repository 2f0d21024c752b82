// The layout of HTTP/2's frames (RFC 9113 §4.1 and §6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spate::http {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum class FrameType : std::uint8_t {
  data,
  headers,
  priority,
  rst_stream,
  settings,
  push_promise,
  ping,
  goaway,
  window_update,
  continuation,
  priority_update = 16,  // RFC 9218.
};

enum FrameFlag : std::uint8_t {
  kAck = 1,
  kEndStream = 1,
  kEndHeaders = 4,
  kPadded = 8,
  kHasPriority = 32,
};

enum class Setting : std::uint16_t {
  header_table_size = 1,
  enable_push,
  max_concurrent_streams,
  initial_window_size,
  max_frame_size,
  max_header_list_size,
  enable_connect_protocol = 8,  // RFC 8441.
  no_rfc7540_priorities,        // RFC 9218.
};

inline constexpr std::size_t kFrameHead = 9;
inline constexpr std::size_t kMostPayload = 16'384;  // The least limit, which both sides accept.
inline constexpr std::int32_t kFirstWindow = 65'535;
// The connection's window does not limit streams: each stream is limited by its own window.
inline constexpr std::int32_t kConnectionWindow = 16 * 1024 * 1024;

constexpr std::uint32_t read_number(const char* at, unsigned bytes) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(at[i]);
  return number;
}
constexpr char* write_number(char* at, std::uint32_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) *at++ = static_cast<char>(number >> 8 * (bytes - 1 - i));
  return at;
}
// The high bit of stream identifiers and of window sizes is reserved.
constexpr std::int32_t read_31_bits(const char* at) {
  return static_cast<std::int32_t>(read_number(at, 4) & 0x7fffffff);
}

struct FrameHead {
  std::uint32_t size = 0;
  FrameType type = FrameType::data;
  std::uint8_t flags = 0;
  std::int32_t stream = 0;

  bool has(FrameFlag flag) const { return (flags & flag) != 0; }
};

constexpr FrameHead read_frame_head(const char* at) {
  return {.size = read_number(at, 3),
          .type = static_cast<FrameType>(at[3]),
          .flags = static_cast<std::uint8_t>(at[4]),
          .stream = read_31_bits(at + 5)};
}
constexpr char* write_frame_head(char* at, const FrameHead& head) {
  at = write_number(at, head.size, 3);
  *at++ = static_cast<char>(head.type);
  *at++ = static_cast<char>(head.flags);
  return write_number(at, static_cast<std::uint32_t>(head.stream), 4);
}

}  // namespace spate::http
