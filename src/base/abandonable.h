// Abandonable: the base of objects behind a handle that call user code. The object is deleted when
// the handle is destroyed: at once, or, if it is calling user code, when the last of these calls
// has returned. Calls may be nested, since a callback may run the loop.
#pragma once

namespace spate {

template <class Self>
class Abandonable {
 public:
  // Called by the handle's destructor: no callback follows.
  void abandon() {
    abandoned_ = true;
    if (calls_ == 0) delete static_cast<Self*>(this);
  }

 protected:
  bool is_abandoned() const { return abandoned_; }
  // Returns whether a call of user code made here is running.
  bool is_calling() const { return calls_ != 0; }

  // Runs `function`, which may call user code. False if the handle was destroyed meanwhile: this
  // may be deleted then.
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
