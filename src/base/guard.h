// StackGuard: an object on the call stack of code that calls user code, which may destroy the
// objects that are needed afterwards.
//
// The object that may be destroyed has a pointer to its innermost guard. It calls detach() in its
// destructor, and is_gone() of each guard is true from then on. Calls nest, and so do the guards.
#pragma once

namespace spate {

template <class Self>
class StackGuard {
 public:
  explicit StackGuard(Self*& innermost) : innermost_(&innermost), outer_(innermost) {
    auto* self = static_cast<Self*>(this);
    // Hides the address: g++ 12 warns of a dangling pointer to the guard otherwise.
    asm("" : "+r"(self));
    innermost = self;
  }
  ~StackGuard() {
    if (innermost_ != nullptr) *innermost_ = outer_;
  }
  StackGuard(const StackGuard&) = delete;
  StackGuard& operator=(const StackGuard&) = delete;

  // Returns whether the guarded object was destroyed.
  bool is_gone() const { return innermost_ == nullptr; }

  // Called by the guarded object: calls `function` with each of its guards.
  template <class Function>
  static void for_each(Self* innermost, const Function& function) {
    for (Self* guard = innermost; guard != nullptr; guard = guard->outer_) function(*guard);
  }
  // As above, by its destructor.
  static void detach(Self* innermost) {
    for_each(innermost, [](StackGuard& guard) { guard.innermost_ = nullptr; });
  }

 private:
  Self** innermost_;  // The object's pointer; nullptr when it was destroyed.
  Self* const outer_;
};

}  // namespace spate
