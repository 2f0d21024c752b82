// Fifo: an intrusive first-in first-out queue. Adding and removing do not allocate. It does not own
// its items; a removed item loses its place.
#pragma once

#include <cstddef>
#include <utility>

namespace spate {

template <class T>
class Fifo;

// The links. T derives from this, and is in at most one Fifo.
template <class T>
class Queued {
 public:
  bool is_queued() const { return is_queued_; }

 private:
  friend class Fifo<T>;

  T* next_ = nullptr;
  T* previous_ = nullptr;
  bool is_queued_ = false;
};

template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }

  // Must not be queued already.
  void push(T& item) {
    Queued<T>& added = links(item);
    added.next_ = nullptr;
    added.previous_ = std::exchange(last_, &item);
    added.is_queued_ = true;
    (added.previous_ == nullptr ? first_ : links(*added.previous_).next_) = &item;
    ++size_;
  }
  // Must be queued.
  void remove(T& item) {
    Queued<T>& gone = links(item);
    gone.is_queued_ = false;
    (gone.previous_ == nullptr ? first_ : links(*gone.previous_).next_) = gone.next_;
    (gone.next_ == nullptr ? last_ : links(*gone.next_).previous_) = gone.previous_;
    --size_;
  }
  // Removes and returns the first item; nullptr if empty.
  T* pop() {
    T* const item = first_;
    if (item != nullptr) remove(*item);
    return item;
  }

 private:
  static Queued<T>& links(T& item) { return item; }

  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate
