// KeptFunction: a user's function that may destroy its owner while it runs. It is destroyed after
// it has returned.
#pragma once

#include <new>
#include <utility>

namespace spate::http {

template <class Function>
class KeptFunction {
 public:
  KeptFunction() = default;
  KeptFunction(KeptFunction&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  KeptFunction(const KeptFunction&) = delete;
  KeptFunction& operator=(const KeptFunction&) = delete;
  ~KeptFunction() {
    if (body_ == nullptr) return;
    body_->is_abandoned = true;
    if (body_->running == 0) delete body_;
  }

  // Sets the function, once; an empty one stays unset. False when memory runs out.
  bool set(Function&& function) {
    if (!function) return true;
    body_ = new (std::nothrow) Body{.function = std::move(function)};
    return body_ != nullptr;
  }
  explicit operator bool() const { return body_ != nullptr; }

  template <class... Args>
  void operator()(Args&&... args) const {
    const Run run(*body_);
    run.body.function(std::forward<Args>(args)...);
  }

 private:
  struct Body {
    Function function;
    unsigned running = 0;
    bool is_abandoned = false;
  };

  // Also ends when the function throws.
  struct Run {
    explicit Run(Body& called) : body(called) { ++body.running; }
    ~Run() {
      if (--body.running == 0 && body.is_abandoned) delete &body;
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Body& body;
  };

  Body* body_ = nullptr;
};

}  // namespace spate::http
