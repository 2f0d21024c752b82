// Immortal: an object that is there before anything runs and is never destroyed.
//
// While a process exits, other threads may still be in their loops: what those use must not go. And
// without a guard for its first use, it is the same for every way this library is linked.
#pragma once

namespace spate {

template <class T>
union Immortal {
  constexpr Immortal() : object() {}
  ~Immortal() {}

  T object;
};

}  // namespace spate
