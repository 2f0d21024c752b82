// Frames of WebSocket made byte by byte, valid and invalid ones, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spate::testing {

struct FrameForm {
  int first = 0x81;       // FIN, RSV and the opcode.
  bool is_masked = true;  // With `mask`.
  std::string_view mask = "\x37\xfa\x21\x3d";
  int size_bytes = -1;          // 0, 2 or 8; -1: the fewest possible.
  std::int64_t said_size = -1;  // Replaces the payload's size.
};

inline std::string frame(FrameForm form, std::string_view payload) {
  const std::uint64_t size =
      form.said_size == -1 ? payload.size() : static_cast<std::uint64_t>(form.said_size);
  const int more = form.size_bytes >= 0 ? form.size_bytes : size < 126 ? 0 : size < 65536 ? 2 : 8;
  const auto mark = more == 0 ? size : more == 2 ? 126u : 127u;
  std::string text;
  text += static_cast<char>(form.first);
  text += static_cast<char>(mark | (form.is_masked ? 0x80u : 0u));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(size >> 8 * i);
  if (!form.is_masked) return text.append(payload);
  text.append(form.mask.substr(0, 4));
  for (std::size_t i = 0; i < payload.size(); ++i)
    text += static_cast<char>(payload[i] ^ form.mask[i % 4]);
  return text;
}

inline std::string close_text(int code, std::string_view reason = {}) {
  std::string text;
  text += static_cast<char>(code >> 8);
  text += static_cast<char>(code & 0xff);
  return text.append(reason);
}

}  // namespace spate::testing
