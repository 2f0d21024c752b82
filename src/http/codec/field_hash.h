// The names of the well-known fields, and a perfect hash for them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/vector16.h"
#include "spate/http/field_id.h"

namespace spate::http {

// In the order of the enumeration; the first is `other`.
inline constexpr std::array<std::string_view, kFieldIds> kFieldNames = {
    "",
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Accept-Ranges",
    "Age",
    "Allow",
    "Alt-Svc",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Cookie",
    "Date",
    "ETag",
    "Expect",
    "Expires",
    "Forwarded",
    "Host",
    "Idempotency-Key",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Keep-Alive",
    "Last-Event-ID",
    "Last-Modified",
    "Link",
    "Location",
    "Max-Forwards",
    "Origin",
    "Pragma",
    "Priority",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "Range",
    "Referer",
    "Retry-After",
    "Sec-WebSocket-Accept",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Version",
    "Server",
    "Set-Cookie",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "User-Agent",
    "Vary",
    "Via",
    "WWW-Authenticate",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
};

inline constexpr std::size_t kShortestFieldName = 2;
inline constexpr std::size_t kLongestFieldName = 24;
inline constexpr std::size_t kFieldSlots = 256;
inline constexpr std::uint32_t kFieldFactor = 0xbc830be3;

// The size of a cache line.
struct alignas(64) FieldSlot {
  char lower[2 * Vector16::kSize] = {};  // Lower case, padded with zeros.
  std::uint32_t wanted = 0;              // Has a bit for each byte of the name.
  std::uint8_t size = 0;
  FieldId id = FieldId::other;
};
using FieldSlots = std::array<FieldSlot, kFieldSlots>;

// Hashes the first two letters, the last two and the size. The factor was found by search so that
// no two names collide; a static_assert checks it.
//
// The table and the lookup both use this function, so they agree on every machine. g++ 12 does not
// make one load of two bytes that are joined.
constexpr std::size_t field_hash(const char* name, std::size_t size) {
  const auto pair = [name](std::size_t at) -> std::uint32_t {
    if !consteval {
      if constexpr (std::endian::native == std::endian::little) {
        std::uint16_t loaded;
        std::memcpy(&loaded, name + at, sizeof(loaded));
        return loaded;
      }
    }
    return static_cast<std::uint32_t>(static_cast<unsigned char>(name[at])) |
           static_cast<std::uint32_t>(static_cast<unsigned char>(name[at + 1])) << 8;
  };
  const std::uint32_t ends = pair(0) | pair(size - 2) << 16;
  const std::uint32_t key = (ends | 0x20202020) ^ static_cast<std::uint32_t>(size) << 8;
  return (key * kFieldFactor) >> 24;
}
constexpr std::size_t field_hash(std::string_view name) {
  return field_hash(name.data(), name.size());
}

consteval FieldSlots make_field_slots() {
  FieldSlots slots = {};
  for (std::size_t id = 1; id < kFieldNames.size(); ++id) {
    const std::string_view name = kFieldNames[id];
    FieldSlot& slot = slots[field_hash(name)];
    slot.wanted = (1U << name.size()) - 1;
    slot.size = static_cast<std::uint8_t>(name.size());
    slot.id = static_cast<FieldId>(id);
    for (std::size_t i = 0; i < name.size(); ++i) slot.lower[i] = static_cast<char>(name[i] | 0x20);
  }
  return slots;
}

inline constexpr FieldSlots kFieldTable = make_field_slots();

consteval bool each_has_its_slot() {
  for (std::size_t id = 1; id < kFieldNames.size(); ++id)
    if (static_cast<std::size_t>(kFieldTable[field_hash(kFieldNames[id])].id) != id) return false;
  return true;
}
static_assert(each_has_its_slot(), "search for another kFieldFactor");

// Returns the id of a token. Bytes after it are read, up to `readable`.
//
// Bytes are compared with the lower-case bit set. This is exact, because known names consist of
// letters and "-", and the other name is a token.
[[gnu::always_inline]] inline FieldId token_id_of(const char* name, std::size_t size,
                                                  const char* readable) {
  if (size - kShortestFieldName > kLongestFieldName - kShortestFieldName) return FieldId::other;
  const FieldSlot& slot = kFieldTable[field_hash(name, size)];
  if (slot.size != size) return FieldId::other;
  char copy[sizeof(slot.lower)];
  const bool is_long = size > Vector16::kSize;
  if (readable - name < (is_long ? 2 : 1) * Vector16::kSize) {
    std::memcpy(copy, name, size);
    name = copy;
  }
  const auto same_at = [&](int at) {
    return Vector16(name + at).equal_in_lower_case(Vector16(slot.lower + at));
  };
  std::uint32_t same = same_at(0);
  if (is_long) same |= same_at(Vector16::kSize) << Vector16::kSize;
  if ((same & slot.wanted) != slot.wanted) return FieldId::other;
  return slot.id;
}

}  // namespace spate::http
