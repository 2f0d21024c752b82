// Lifetime, Watch: whether an object still exists after user code was called, which may have
// destroyed it.
#pragma once

namespace spate::http {

class Watch;

// A member of the object.
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

// On the stack of whoever calls.
class Watch {
 public:
  explicit Watch(Lifetime& lifetime) : lifetime_(&lifetime), outer_(lifetime.innermost_) {
    Watch* self = this;
    asm("" : "+r"(self));  // g++ 12 else warns of a pointer that outlives the watch.
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
