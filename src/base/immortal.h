// Immortal: a global that is constant-initialized and never destroyed.
//
// While a process exits, other threads may still be running their loops, so what they use must not
// be destroyed. It needs no guard for its first use, however the library is linked.
#pragma once

namespace spate {

template <class T>
union Immortal {
  constexpr Immortal() : object() {}
  ~Immortal() {}

  T object;
};

}  // namespace spate
