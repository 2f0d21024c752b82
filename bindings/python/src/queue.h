// Containers in Python objects: memory filled with zeros is an empty container.
#pragma once

#include "python.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace pyspate {

// Grows `items` to `capacity`. Returns false, with a MemoryError set, if memory is exhausted.
template <class T>
bool grow(T*& items, std::size_t capacity) {
  void* const memory = PyMem_RawRealloc(items, capacity * sizeof(T));
  if (memory == nullptr) {
    PyErr_NoMemory();
    return false;
  }
  items = static_cast<T*>(memory);
  return true;
}

// A queue of trivial elements in a ring.
template <class T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return items_[(head_ + index) & (capacity_ - 1)]; }
  T& front() { return items_[head_]; }

  // Makes room for another element.
  bool reserve() {
    if (size_ < capacity_) return true;
    const std::size_t before = capacity_;
    const std::size_t after = before == 0 ? 8 : before * 2;
    if (!grow(items_, after)) return false;
    // Moves the wrapped part after the rest.
    std::memcpy(static_cast<void*>(items_ + before), items_, head_ * sizeof(T));
    capacity_ = after;
    return true;
  }
  // Requires reserve().
  void append(const T& item) { items_[(head_ + size_++) & (capacity_ - 1)] = item; }
  bool push(const T& item) {
    if (!reserve()) return false;
    append(item);
    return true;
  }
  T pop() {
    const T item = items_[head_];
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
    return item;
  }
  void free() {
    PyMem_RawFree(items_);
    items_ = nullptr;
    capacity_ = head_ = size_ = 0;
  }

 private:
  T* items_;
  std::size_t capacity_, head_, size_;
};

// A growing array of trivial elements.
template <class T>
class Array {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return items_[index]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

  bool push(const T& item) {
    if (size_ == capacity_ && !reserve(size_ == 0 ? 8 : size_ * 2)) return false;
    items_[size_++] = item;
    return true;
  }
  bool reserve(std::size_t capacity) {
    if (capacity <= capacity_) return true;
    if (!grow(items_, capacity)) return false;
    capacity_ = capacity;
    return true;
  }
  // Appends zeroed elements.
  bool extend(std::size_t size) {
    if (size <= size_) return true;
    if (!reserve(size)) return false;
    std::memset(static_cast<void*>(items_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
    return true;
  }
  void shrink(std::size_t size) { size_ = size; }
  T take_last() { return items_[--size_]; }
  void swap(Array& other) {
    std::swap(items_, other.items_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void free() {
    PyMem_RawFree(items_);
    items_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  T* items_;
  std::size_t size_, capacity_;
};

}  // namespace pyspate
