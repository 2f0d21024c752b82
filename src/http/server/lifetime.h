// Lifetime, Watch: detect whether user code destroyed an object during a call.
#pragma once

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
class Watch {
 public:
  explicit Watch(Lifetime& lifetime) : lifetime_(&lifetime), outer_(lifetime.innermost_) {
    Watch* self = this;
    // Hides the address: g++ 12 warns of a dangling pointer to the watch otherwise.
    asm("" : "+r"(self));
    lifetime.innermost_ = self;
  }
  ~Watch() {
    if (lifetime_ != nullptr) lifetime_->innermost_ = outer_;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool is_gone() const { return lifetime_ == nullptr; }

 private:
  friend class Lifetime;
  Lifetime* lifetime_;
  Watch* outer_;
};

inline Lifetime::~Lifetime() {
  for (Watch* watch = innermost_; watch != nullptr; watch = watch->outer_)
    watch->lifetime_ = nullptr;
}

}  // namespace spate::http
