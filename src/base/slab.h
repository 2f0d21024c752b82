// Slab: memory for many objects of one kind, without a header for each. What is given back is kept
// for the next; it goes when the slab goes.
#pragma once

#include <cstddef>

#include "base/array.h"
#include "base/memory.h"

namespace spate {

template <class T>
class Slab {
 public:
  Slab() = default;
  ~Slab() {
    for (Place* block : blocks_) {
      mark_used(block, sizeof(Place) * kPlaces);
      deallocate(block);
    }
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Raw memory for one; nullptr when there is none.
  void* take() {
    if (free_ == nullptr && !add_block()) return nullptr;
    Place* place = free_;
    mark_used(place, sizeof(Place));
    free_ = place->next;
    return place;
  }
  void give_back(void* memory) {
    auto* place = static_cast<Place*>(memory);
    place->next = free_;
    free_ = place;
    mark_unused(place, sizeof(Place));
  }

 private:
  static constexpr std::size_t kPlaces = 64;
  union Place {
    Place* next;
    alignas(T) std::byte object[sizeof(T)];
  };

  bool add_block() {
    if (!blocks_.reserve(blocks_.size() + 1)) return false;
    auto* block = static_cast<Place*>(reallocate(nullptr, sizeof(Place) * kPlaces));
    if (block == nullptr) return false;
    blocks_.push_reserved(block);
    for (std::size_t i = kPlaces; i > 0; --i) give_back(&block[i - 1]);
    return true;
  }

  Place* free_ = nullptr;
  Array<Place*> blocks_;
};

}  // namespace spate
