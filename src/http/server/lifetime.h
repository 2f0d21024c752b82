// Lifetime, Watch: detect whether user code destroyed an object during a call.
#pragma once

#include "base/guard.h"

namespace spate::http {

class Watch;

// A member of the watched object.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  inline ~Lifetime();

 private:
  friend class Watch;
  Watch* innermost_ = nullptr;
};

// On the stack of the caller.
class Watch : public StackGuard<Watch> {
 public:
  explicit Watch(Lifetime& lifetime) : StackGuard(lifetime.innermost_) {}
};

inline Lifetime::~Lifetime() { Watch::detach(innermost_); }

}  // namespace spate::http
