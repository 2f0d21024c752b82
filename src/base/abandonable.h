// Abandonable: what a handle of the user's refers to, and what calls the user's code. When the
// handle goes, so does this: at once, or, if calls of user code are running within it, when the
// last of them has returned. They may be nested: a callback that runs the loop is called again.
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

  // Runs `function`, in which user code may be called. False if the handle has gone meanwhile:
  // *this may be gone, too.
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
