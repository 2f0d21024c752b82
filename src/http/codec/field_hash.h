// The names of the well-known fields, and a hash that has no two of them in one place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "spate/http/field_id.h"

namespace spate::http {

// In the order of the enumeration, behind `other`.
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
inline constexpr std::uint32_t kFieldFactor = 0x0a4fa135;

// Of a name that is a token.
FieldId token_id_of(std::string_view token);

struct FieldSlot {
  char lower[kLongestFieldName] = {};
  std::uint8_t size = 0;
  FieldId id = FieldId::other;
};
using FieldSlots = std::array<FieldSlot, kFieldSlots>;

// Of the first two letters, the last two and the size; in any case. The factor was searched for
// until no two names met; what does not hold any longer does not compile.
constexpr std::size_t field_hash(std::string_view name) {
  const auto letter = [name](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(name[i]) | 0x20);
  };
  const std::size_t size = name.size();
  const std::uint32_t key = letter(0) | letter(1) << 8 | letter(size - 1) << 16 |
                            (letter(size - 2) ^ static_cast<std::uint32_t>(size)) << 24;
  return (key * kFieldFactor) >> 24;
}

consteval FieldSlots make_field_slots() {
  FieldSlots slots = {};
  for (std::size_t id = 1; id < kFieldNames.size(); ++id) {
    const std::string_view name = kFieldNames[id];
    FieldSlot& slot = slots[field_hash(name)];
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

}  // namespace spate::http
