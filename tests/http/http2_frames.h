// Frames of HTTP/2 as bytes, for peers that send invalid ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spate::testing {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Type : char {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPush,
  kPing,
  kGoAway,
  kWindow,
  kContinuation
};
enum : char { kEndStream = 1, kEndHeaders = 4 };

inline std::string number(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string frame(Type type, char flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  return number(static_cast<std::uint32_t>(payload.size())).substr(1) + std::string{type, flags} +
         number(stream) + std::string(payload);
}

// The received frames: their types, and the codes of RST_STREAM and GOAWAY.
struct Heard {
  explicit Heard(std::string_view bytes) {
    if (bytes.starts_with(kPreface)) bytes.remove_prefix(kPreface.size());
    while (bytes.size() >= 9) {
      const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
      const std::size_t size = at(0) << 16 | at(1) << 8 | at(2);
      if (bytes.size() < 9 + size) return;
      ++count[bytes[3]];
      if (bytes[3] == kReset) last_reset = at(12);
      if (bytes[3] == kGoAway) last_goaway = at(16);
      if (bytes[3] == kHeaders) streams.push_back(at(7) << 8 | at(8));
      if (bytes[3] == kData) body += size;
      bytes.remove_prefix(9 + size);
    }
  }
  std::map<char, int> count;
  std::vector<std::uint32_t> streams;  // The stream of each HEADERS frame.
  std::size_t body = 0;                // Bytes of DATA.
  int last_reset = -1;
  int last_goaway = -1;
};

}  // namespace spate::testing
