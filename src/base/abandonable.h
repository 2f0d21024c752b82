// Abandonable: the object behind a handle, which calls user code. It is deleted when the handle is
// destroyed: at once, or, if it is calling user code, when the last of these calls has returned.
// Calls may be nested, since a callback may run the loop.
#pragma once

namespace spate {

template <class Self>
class Abandonable {
 public:
  // The handle is being destroyed: no callback follows.
  void abandon() {
    abandoned_ = true;
    if (calls_ == 0) delete static_cast<Self*>(this);
  }

 protected:
  bool is_abandoned() const { return abandoned_; }
  // Whether user code that was called from here is running.
  bool is_calling() const { return calls_ != 0; }

  // Runs `function`, which may call user code. False if the handle was destroyed meanwhile: *this
  // may be gone, too.
  template <class Function>
  bool call(Function function) {
    ++calls_;
    function();
    --calls_;
    if (!abandoned_) return true;
    if (calls_ == 0) delete static_cast<Self*>(this);
    return false;
  }

 private:
  int calls_ = 0;
  bool abandoned_ = false;
};

}  // namespace spate
