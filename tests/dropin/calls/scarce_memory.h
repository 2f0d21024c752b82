// An allocator that gives the library a limited number of blocks, and counts them. Only one exists
// at a time; all its blocks must be freed before it is destroyed.
#pragma once

#include <event2/event.h>

#include <climits>
#include <cstddef>
#include <cstdlib>

namespace spate::dropin {

class ScarceMemory {
 public:
  ScarceMemory() {
    event_set_mem_functions(take, take_more, give_back);
    event_set_log_callback([](int, const char*) {});
    allow_all();
  }
  ~ScarceMemory() {
    event_set_log_callback(nullptr);
    event_set_mem_functions(nullptr, nullptr, nullptr);
  }
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

  // After `blocks` allocations, the next `denials` fail.
  void allow(int blocks, int denials = INT_MAX) {
    before_ = blocks;
    denials_ = denials;
    is_denied_ = false;
  }
  void allow_all() { before_ = INT_MAX; }
  bool is_denied() const { return is_denied_; }  // Since allow().
  int blocks() const { return blocks_; }
  // Also for blocks that the library's functions leave to their caller.
  static void give_back(void* block) {
    if (block != nullptr) --blocks_;
    std::free(block);
  }

 private:
  static bool is_there() {
    if (before_ == INT_MAX) return true;
    if (before_ > 0) return --before_, true;
    if (denials_ == 0) return true;
    --denials_;
    is_denied_ = true;
    return false;
  }
  static void* take(std::size_t size) {
    if (!is_there()) return nullptr;
    ++blocks_;
    return std::malloc(size);
  }
  static void* take_more(void* old, std::size_t size) {
    if (old == nullptr) return take(size);
    return is_there() ? std::realloc(old, size) : nullptr;
  }
  static inline int before_ = INT_MAX;
  static inline int denials_ = 0;
  static inline int blocks_ = 0;
  static inline bool is_denied_ = false;
};

}  // namespace spate::dropin
