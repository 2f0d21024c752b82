#include "http/codec/websocket_frame.h"

#include <cstring>

namespace spate::http {

namespace {

constexpr std::uint8_t kLast = 0x80;
constexpr std::uint8_t kCompressed = 0x40;
constexpr std::uint8_t kReserved = 0x30;
constexpr std::uint8_t kOpcode = 0x0f;
constexpr std::uint8_t kMasked = 0x80;
constexpr std::uint8_t kSize = 0x7f;
// Sizes up to 125 are in the second byte of the header; with these values, two or eight bytes
// follow.
constexpr std::uint8_t kTwoBytes = 126;
constexpr std::uint8_t kEightBytes = 127;

std::uint8_t byte_at(Bytes bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

std::uint64_t read_number(Bytes bytes) {
  std::uint64_t number = 0;
  for (const std::byte each : bytes) number = number << 8 | std::to_integer<std::uint8_t>(each);
  return number;
}

bool is_known(std::uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

// Parses the first two bytes.
bool read_marks(Bytes bytes, FrameHead& head) {
  const std::uint8_t first = byte_at(bytes, 0);
  const std::uint8_t second = byte_at(bytes, 1);
  if ((first & kReserved) != 0 || !is_known(first & kOpcode)) return false;
  head.opcode = static_cast<Opcode>(first & kOpcode);
  head.is_last = (first & kLast) != 0;
  head.is_compressed = (first & kCompressed) != 0;
  head.is_masked = (second & kMasked) != 0;
  if (is_control(head.opcode))
    return head.is_last && !head.is_compressed && (second & kSize) <= kMostControl;
  return !head.is_compressed || head.opcode != Opcode::continuation;
}

// True if the size is encoded in the shortest form, and is below 2^63.
bool is_shortest(std::uint64_t size, std::size_t bytes) {
  if (bytes == 0) return true;
  return bytes == 2 ? size >= kTwoBytes : size > UINT16_MAX && size <= INT64_MAX;
}

}  // namespace

FrameState read_frame_head(Bytes bytes, FrameHead& head) {
  if (bytes.size() < 2) return FrameState::unfinished;
  if (!read_marks(bytes, head)) return FrameState::broken;
  const std::uint8_t mark = byte_at(bytes, 1) & kSize;
  const std::size_t more = mark < kTwoBytes ? 0 : mark == kTwoBytes ? 2 : 8;
  const std::size_t mask_size = head.is_masked ? sizeof(Mask) : 0;
  if (bytes.size() < 2 + more) return FrameState::unfinished;
  head.size = more == 0 ? mark : read_number(bytes.subspan(2, more));
  if (!is_shortest(head.size, more)) return FrameState::broken;
  head.head_size = 2 + more + mask_size;
  if (bytes.size() < head.head_size) return FrameState::unfinished;
  std::memcpy(head.mask.data(), bytes.data() + 2 + more, mask_size);
  return FrameState::whole;
}

std::size_t write_frame_head(const FrameHead& head, std::byte* to) {
  const std::size_t more = head.size < kTwoBytes ? 0 : head.size <= UINT16_MAX ? 2 : 8;
  const auto mark = more == 0   ? static_cast<std::uint8_t>(head.size)
                    : more == 2 ? kTwoBytes
                                : kEightBytes;
  to[0] =
      static_cast<std::byte>((head.is_last ? kLast : 0) | (head.is_compressed ? kCompressed : 0) |
                             static_cast<std::uint8_t>(head.opcode));
  to[1] = static_cast<std::byte>((head.is_masked ? kMasked : 0) | mark);
  for (std::size_t i = 0; i < more; ++i)
    to[2 + i] = static_cast<std::byte>(head.size >> 8 * (more - 1 - i));
  if (!head.is_masked) return 2 + more;
  std::memcpy(to + 2 + more, head.mask.data(), sizeof(Mask));
  return 2 + more + sizeof(Mask);
}

std::optional<CloseSaid> read_close(Bytes payload) {
  if (payload.empty()) return CloseSaid{};
  if (payload.size() < 2) return {};
  const auto code = static_cast<CloseCode>(read_number(payload.first(2)));
  if (!may_be_sent(code)) return {};
  return CloseSaid{code, text_of(payload.subspan(2))};
}

}  // namespace spate::http
