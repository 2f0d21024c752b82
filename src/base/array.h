// Array: a growable array of plain values, for the loop's tables. Growing reports failure by its
// result, not by an exception.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/memory.h"

namespace spate {

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() { deallocate(data_); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  // False, with nothing changed, when memory runs out.
  bool push(T value) {
    if (size_ == capacity_ && !reserve(size_ + 1)) return false;
    data_[size_++] = value;
    return true;
  }
  // Appends into reserved capacity.
  void push_reserved(T value) { data_[size_++] = value; }
  // Counts elements that were written into reserved capacity.
  void grow_reserved(std::size_t count) { size_ += count; }
  bool reserve(std::size_t wanted) { return wanted <= capacity_ || grow(wanted); }
  // Reserves exactly this capacity: for arrays with an element per idle connection.
  bool reserve_exactly(std::size_t wanted) { return wanted <= capacity_ || resize_to(wanted); }
  // Returns the next capacity for `wanted` elements: doubles, or for large arrays adds an eighth.
  static std::size_t with_reserve(std::size_t wanted) {
    return wanted < kMany ? std::bit_ceil(wanted) : wanted + wanted / 8;
  }
  // Grows to `size` with elements of zero bytes.
  bool grow_with_zeros(std::size_t size) {
    if (!reserve(size)) return false;
    std::memset(static_cast<void*>(data_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
    return true;
  }
  void pop() { --size_; }
  // Halves a large array of which three quarters are unused.
  void give_back_room() {
    if (capacity_ > kMany && size_ < capacity_ / 4) resize_to(capacity_ / 2);
  }
  void shrink_to(std::size_t size) { size_ = size; }
  void clear() { size_ = 0; }
  void swap(Array& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  static constexpr std::size_t kMinimum = 8;
  static constexpr std::size_t kMany = 4096;
  static constexpr std::size_t kOwnPages = 128 * 1024;  // glibc's M_MMAP_THRESHOLD.

  [[gnu::noinline]] bool grow(std::size_t wanted) {
    const std::size_t grown = capacity_ * 2 > kMinimum ? capacity_ * 2 : kMinimum;
    return resize_to(wanted > grown ? wanted : grown);
  }
  bool resize_to(std::size_t capacity) {
    if (capacity > SIZE_MAX / sizeof(T)) return false;
    // Nothing needs to be copied from an empty array. From kOwnPages on, realloc() copies nothing
    // either: it moves the pages. To free such a block would make glibc keep the next ones among
    // the small ones, where each growth leaves a gap.
    const bool starts_over = size_ == 0 && capacity_ * sizeof(T) < kOwnPages;
    void* data = reallocate(starts_over ? nullptr : data_, capacity * sizeof(T));
    if (data == nullptr) return false;
    if (starts_over) deallocate(data_);
    data_ = static_cast<T*>(data);
    capacity_ = capacity;
    return true;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace spate
