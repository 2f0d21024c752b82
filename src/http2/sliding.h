// Sliding: a queue whose elements are contiguous in memory: appended at the end, dropped from the
// front. Appending moves the elements, or the array grows, so that views are valid until then.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/array.h"

namespace spate::http {

template <class T>
class Sliding {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::size_t size() const { return items_.size() - front_; }
  bool empty() const { return size() == 0; }
  const T* begin() const { return items_.begin() + front_; }
  const T* end() const { return items_.end(); }
  const T& operator[](std::size_t i) const { return items_[front_ + i]; }

  // Makes room for `count` more. False when memory runs out.
  bool reserve(std::size_t count) {
    if (items_.size() + count <= items_.capacity()) return true;
    // At least half of the array is free then, so each element is rarely moved.
    if ((size() + count) * 2 <= items_.capacity()) return slide(), true;
    return items_.reserve(items_.size() + count);
  }
  // Appends into reserved room.
  void append_reserved(const T* from, std::size_t count) {
    if (count > 0) std::memcpy(items_.end(), from, count * sizeof(T));
    items_.grow_reserved(count);
  }
  void drop(std::size_t count) {
    front_ += count;
    if (front_ == items_.size()) clear();
  }
  void clear() {
    front_ = 0;
    items_.clear();
  }

 private:
  void slide() {
    const std::size_t kept = size();
    std::memmove(items_.begin(), items_.begin() + front_, kept * sizeof(T));
    items_.shrink_to(kept);
    front_ = 0;
  }

  Array<T> items_;
  std::size_t front_ = 0;
};

}  // namespace spate::http
