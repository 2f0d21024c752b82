// The static table of HPACK (RFC 7541 appendix A), and look-ups in it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "http2/field_trait.h"

namespace spate::http {

struct HpackPair {
  std::string_view name;
  std::string_view value = {};
};

// Index 1 is the first.
inline constexpr std::array<HpackPair, 61> kHpackStatic = {{
    {":authority"},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset"},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language"},
    {"accept-ranges"},
    {"accept"},
    {"access-control-allow-origin"},
    {"age"},
    {"allow"},
    {"authorization"},
    {"cache-control"},
    {"content-disposition"},
    {"content-encoding"},
    {"content-language"},
    {"content-length"},
    {"content-location"},
    {"content-range"},
    {"content-type"},
    {"cookie"},
    {"date"},
    {"etag"},
    {"expect"},
    {"expires"},
    {"from"},
    {"host"},
    {"if-match"},
    {"if-modified-since"},
    {"if-none-match"},
    {"if-range"},
    {"if-unmodified-since"},
    {"last-modified"},
    {"link"},
    {"location"},
    {"max-forwards"},
    {"proxy-authenticate"},
    {"proxy-authorization"},
    {"range"},
    {"referer"},
    {"refresh"},
    {"retry-after"},
    {"server"},
    {"set-cookie"},
    {"strict-transport-security"},
    {"transfer-encoding"},
    {"user-agent"},
    {"vary"},
    {"via"},
    {"www-authenticate"},
}};

// Hashes the size, and up to eight bytes of either end.
constexpr std::uint32_t hpack_hash(std::string_view text) {
  const auto load = [text](std::size_t at, std::size_t size) {
    std::uint64_t bytes = 0;
    if !consteval {
      if constexpr (std::endian::native == std::endian::little) {
        std::memcpy(&bytes, text.data() + at, size);
        return bytes;
      }
    }
    for (std::size_t i = 0; i < size; ++i)
      bytes |= std::uint64_t{static_cast<unsigned char>(text[at + i])} << 8 * i;
    return bytes;
  };
  const std::size_t size = text.size();
  std::uint64_t front = 0;
  std::uint64_t back = 0;
  if (size >= 8) {
    front = load(0, 8);
    back = load(size - 8, 8);
  } else if (size >= 4) {
    front = load(0, 4);
    back = load(size - 4, 4);
  } else if (size > 0) {
    front = static_cast<unsigned char>(text[0]);
    back = static_cast<unsigned char>(text[size - 1]) |
           std::uint64_t{static_cast<unsigned char>(text[size / 2])} << 8;
  }
  const std::uint64_t product =
      (front * 0x9e3779b97f4a7c15u ^ (back + size) * 0xbf58476d1ce4e5b9u) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(product >> 32);
}

// Returns the first index of a name in the static table, or 0.
std::uint8_t hpack_static_name(std::string_view name, std::uint32_t hash);
// Returns the index of a field in the static table, or 0. `index` is the first of its name.
std::uint8_t hpack_static_field(std::uint8_t index, std::string_view value);
// `index` is 1 ... 61.
FieldTrait hpack_static_trait(std::size_t index);

}  // namespace spate::http
