// Mark: counts its live objects.
#pragma once

namespace spate::testing {

class Mark {
 public:
  explicit Mark(int* count) : count_(count) { ++*count_; }
  ~Mark() { --*count_; }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  int* count_;
};

}  // namespace spate::testing
