// Immortal: a global that is constant-initialized and never destroyed.
//
// While a process exits, other threads may still be running their loops, so objects they use must
// not be destroyed. Its first use needs no guard, however the library is linked.
#pragma once

namespace spate {

template <class T>
union Immortal {
  constexpr Immortal() : object() {}
  ~Immortal() {}

  T object;
};

}  // namespace spate
