// Structs that begin with their size, so that a later version may add members at the end: a program
// may be older or newer than the library.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace spate::c {

// Copies the members known to both versions. Members unknown to the library must be zero. Without a
// struct, all members are zero. `Oldest` is the size in the first version. Returns 0, or -EINVAL.
template <std::size_t Oldest, class Struct>
int copy_sized(const Struct* from, Struct& to) {
  std::memset(&to, 0, sizeof(to));
  if (from == nullptr) return 0;
  if (from->size < Oldest) return -EINVAL;
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(to); i < from->size; ++i) {
    if (bytes[i] != 0) return -EINVAL;
  }
  std::memcpy(&to, from, std::min(from->size, sizeof(to)));
  return 0;
}

// For structs that have not grown since the first version.
template <class Struct>
int copy_sized(const Struct* from, Struct& to) {
  return copy_sized<sizeof(Struct)>(from, to);
}

}  // namespace spate::c
