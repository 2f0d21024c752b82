// Masking of a WebSocket client's frames: bytes are combined by XOR with four random bytes (RFC
// 6455 §5.3), so that a page cannot make a proxy see a chosen request. Masking twice restores the
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "spate/net/bytes.h"

namespace spate::http {

using Mask = std::array<std::byte, 4>;

// Returns the mask for the bytes after the first `size` ones.
inline Mask mask_behind(const Mask& mask, std::size_t size) {
  return {mask[size % 4], mask[(size + 1) % 4], mask[(size + 2) % 4], mask[(size + 3) % 4]};
}

// Masks one Part of bytes, and advances both pointers.
template <class Part>
void mask_part(Part masks, const std::byte*& at, std::byte*& to) {
  Part part;
  std::memcpy(&part, at, sizeof(part));
  part ^= masks;
  std::memcpy(to, &part, sizeof(part));
  at += sizeof(part);
  to += sizeof(part);
}

// Writes masked `bytes` to `to`, which has as much room. The two must be equal or must not overlap.
inline void apply_mask(const Mask& mask, Bytes bytes, std::byte* to) {
  typedef std::uint64_t Vector __attribute__((vector_size(16)));
  std::uint32_t word = 0;
  std::memcpy(&word, mask.data(), sizeof(word));
  const std::uint64_t twice = std::uint64_t{word} << 32 | word;
  const Vector masks = {twice, twice};
  const std::byte* at = bytes.data();
  const std::size_t size = bytes.size();
  for (std::size_t left = size; left >= sizeof(Vector); left -= sizeof(Vector))
    mask_part(masks, at, to);
  if ((size & 8) != 0) mask_part(twice, at, to);
  if ((size & 4) != 0) mask_part(word, at, to);
  for (std::size_t i = 0; i < size % 4; ++i) to[i] = at[i] ^ mask[i];
}

}  // namespace spate::http
