// The bytes on the wire of the WebSocket servers: a client's handshake, and frames.
#ifndef BENCH_WORKLOADS_WEBSOCKET_MESSAGE_H
#define BENCH_WORKLOADS_WEBSOCKET_MESSAGE_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// The key and its answer are those of RFC 6455.
inline std::string handshake_for(std::string_view target) {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}
inline constexpr std::string_view kAccepted = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

// The head of a binary message, without a mask; `mask_bit` is 0x80 if one follows.
inline std::string frame_head(std::size_t size, unsigned mask_bit = 0) {
  std::string head = "\x82";
  if (size < 126) return head += static_cast<char>(size | mask_bit);
  const int bytes = size < 65536 ? 2 : 8;
  head += static_cast<char>((bytes == 2 ? 126u : 127u) | mask_bit);
  for (int i = bytes - 1; i >= 0; --i) head += static_cast<char>(std::uint64_t(size) >> 8 * i);
  return head;
}

// A message of a client's, and how long its frame is: 0 if it has not come whole.
struct Arrived {
  std::size_t frame_size = 0;
  std::string_view message{};
};

// The frame parser of hand-written servers: reads the length, and unmasks the payload into `room`,
// which may be the start of the frame itself.
inline Arrived unmask(std::string_view bytes, char* room) {
  const auto byte = [bytes](std::size_t i) { return std::uint64_t(std::uint8_t(bytes[i])); };
  if (bytes.size() < 6) return {};
  std::uint64_t size = byte(1) & 0x7f;
  std::size_t head = 6;
  if (size >= 126) {
    const std::size_t width = size == 126 ? 2 : 8;
    head += width;
    if (bytes.size() < head) return {};
    size = 0;
    for (std::size_t i = 0; i < width; ++i) size = size << 8 | byte(2 + i);
  }
  if (bytes.size() - head < size) return {};
  const char* const from = bytes.data() + head;
  char mask[8];
  memcpy(mask, from - 4, 4);
  memcpy(mask + 4, from - 4, 4);
  std::uint64_t masks, i = 0;
  memcpy(&masks, mask, 8);
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    memcpy(&word, from + i, 8);
    word ^= masks;
    memcpy(room + i, &word, 8);
  }
  for (; i < size; ++i) room[i] = char(from[i] ^ mask[i % 4]);
  return {head + size, {room, size}};
}

#endif
