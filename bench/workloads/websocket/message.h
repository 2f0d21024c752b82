// What goes over the wire of the WebSocket servers: the handshake of a client, and frames.
#ifndef BENCH_WORKLOADS_WEBSOCKET_MESSAGE_H
#define BENCH_WORKLOADS_WEBSOCKET_MESSAGE_H

#include <cstdint>
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

#endif
