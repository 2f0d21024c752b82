// Fifo: a List that is a first-in first-out queue, and counts its items. A removed item loses its
// place.
#pragma once

#include <cstddef>
#include <utility>

#include "base/list.h"

namespace spate {

template <class T, class Tag = void>
class Fifo {
 public:
  Fifo() = default;
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return size_; }
  T* first() const { return items_.first(); }
  T* after(const T& item) const { return items_.after(item); }

  static bool is_linked(const T& item) { return List<T, Tag>::is_linked(item); }

  // Must not be linked already.
  void push(T& item) {
    items_.push_back(item);
    ++size_;
  }
  // Puts it before the others.
  void push_front(T& item) {
    items_.push_front(item);
    ++size_;
  }
  // Must be in this queue.
  void remove(T& item) {
    items_.remove(item);
    --size_;
  }
  // Removes and returns the first item; nullptr if empty.
  T* pop() {
    T* const item = items_.first();
    if (item != nullptr) remove(*item);
    return item;
  }
  // Appends all items of `other`.
  void take_over(Fifo& other) {
    items_.take_over(other.items_);
    size_ += std::exchange(other.size_, 0);
  }

 private:
  List<T, Tag> items_;
  std::size_t size_ = 0;
};

}  // namespace spate
