// zlib allocates from the library's allocator, so that tests can make memory run out.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <new>
#include <span>

#include "base/memory.h"

namespace spate::http {

inline voidpf take_zlib_memory(voidpf, uInt count, uInt size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(std::size_t{count}, std::size_t{size}, &bytes)) return nullptr;
  return reallocate(nullptr, bytes);
}
inline void give_zlib_memory(voidpf, voidpf memory) { deallocate(memory); }

// Allocates an uninitialized stream; nullptr when memory runs out.
template <class Stream>
Stream* make_zlib_stream() {
  void* memory = reallocate(nullptr, sizeof(Stream));
  if (memory == nullptr) return nullptr;
  auto* stream = new (memory) Stream();
  stream->zlib.zalloc = take_zlib_memory;
  stream->zlib.zfree = give_zlib_memory;
  return stream;
}

// Set input and output of a call. zlib counts in 32 bits, and takes no pointer to const.
inline void set_input(z_stream& zlib, std::span<const std::byte> bytes) {
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
}
inline void set_output(z_stream& zlib, std::span<std::byte> room) {
  zlib.next_out = reinterpret_cast<Bytef*>(room.data());
  zlib.avail_out = static_cast<uInt>(room.size());
}
inline constexpr std::size_t kMostOfZlib = 1u << 30;

}  // namespace spate::http
