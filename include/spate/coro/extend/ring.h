// Ring: a ring buffer of values with fixed capacity, used by Channel and Mailbox. For authors of
// awaitables.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "spate/assert.h"

namespace spate::coro {

template <class T>
class Ring {
 public:
  // `capacity`: at least 1.
  explicit Ring(std::size_t capacity)
      : slots_(new(std::nothrow) std::optional<T>[capacity]), capacity_(capacity) {
    SPATE_ASSERT(capacity > 0, "the capacity is at least 1");
  }

  // False when memory ran out.
  explicit operator bool() const { return slots_ != nullptr; }
  std::size_t capacity() const { return capacity_; }
  std::size_t size() const { return size_; }
  // Must not be called on a full ring.
  void put(T&& value) { slots_[(first_ + size_++) % capacity_].emplace(std::move(value)); }
  // Must not be called on an empty ring.
  std::optional<T> take() {
    std::optional<T> value = std::exchange(slots_[first_], std::nullopt);
    first_ = (first_ + 1) % capacity_;
    --size_;
    return value;
  }

 private:
  std::unique_ptr<std::optional<T>[]> slots_;
  std::size_t capacity_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace spate::coro
