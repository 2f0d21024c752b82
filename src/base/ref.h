// Ref: a reference-counting pointer. The owner, a handle, or a function on the stack that continues
// after user code each hold one.
#pragma once

#include <cstdint>
#include <utility>

namespace spate {

class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  ~Counted() = default;

 private:
  template <class T>
  friend class Ref;
  std::uint32_t refs_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) ++counted().refs_;
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    Ref moved(std::move(other));
    std::swap(object_, moved.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) drop(object_);
  }

  // Takes over a reference released by leak().
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  T* leak() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Counted& counted() const { return *object_; }
  // Out of line: g++ 12 would otherwise warn about a use after free, because it takes the first of
  // two references for the last.
  [[gnu::noinline]] static void drop(T* object) {
    if (--static_cast<Counted&>(*object).refs_ == 0) delete object;
  }

  T* object_ = nullptr;
};

}  // namespace spate
