// Slab: memory for many objects of one type, without a header for each. Freed places are reused;
// when more are free than in use, free blocks are returned to the system.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>

#include "base/array.h"
#include "base/memory.h"

namespace spate {

template <class T>
class Slab {
 public:
  Slab() = default;
  ~Slab() {
    for (Block* block : blocks_) release(block);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Returns raw memory for one object; nullptr when memory runs out.
  void* take() {
    if (free_ == nullptr && !add_block()) return nullptr;
    Place* place = free_;
    mark_used(place, sizeof(Place));
    free_ = place->next;
    --idle_;
    return place;
  }
  void give_back(void* memory) {
    push(static_cast<Place*>(memory));
    if (idle_ >= trim_at_) trim();
  }
  // Visits each object in use, in no order; none may be taken or given back meanwhile.
  template <class Visit>
  void for_each(Visit visit) {
    find_idle();
    for (Block* block : blocks_) {
      for (std::size_t i = 0; i < kPlaces; ++i) {
        if ((block->idle >> i & 1) != 0) continue;
        visit(*std::launder(reinterpret_cast<T*>(block->places[i].object)));
      }
    }
  }
  // Returns for how many objects there is memory.
  std::size_t capacity() const { return blocks_.size() * kPlaces; }

 private:
  static constexpr std::size_t kPlaces = 64;
  static constexpr std::uint64_t kAllIdle = UINT64_MAX;
  static constexpr std::size_t kMaxIdle = 1024;  // Free places that are always kept.
  union Place {
    Place* next;
    alignas(T) std::byte object[sizeof(T)];
  };
  struct Block {
    std::uint64_t idle;  // A bit for each place, set by find_idle().
    Place places[kPlaces];
  };

  void push(Place* place) {
    mark_used(place, sizeof(Place));
    place->next = free_;
    free_ = place;
    ++idle_;
    mark_unused(place, sizeof(Place));
  }
  bool add_block() {
    if (!blocks_.reserve(blocks_.size() + 1)) return false;
    auto* block = static_cast<Block*>(reallocate(nullptr, sizeof(Block)));
    if (block == nullptr) return false;
    blocks_.push_reserved(block);
    for (std::size_t i = kPlaces; i > 0; --i) push(&block->places[i - 1]);
    set_trim_at();
    return true;
  }
  static void release(Block* block) {
    mark_used(block, sizeof(Block));
    deallocate(block);
  }
  // Trims again when there are half as many more free places as after the last time, and at least
  // as many as in use. So trimming costs a few steps per freed place, and a slab in even use is not
  // trimmed.
  void set_trim_at() {
    const std::size_t used = capacity() - idle_;
    trim_at_ = std::max({kMaxIdle, used, idle_ + idle_ / 2});
  }

  void find_idle() {
    std::ranges::sort(blocks_, std::less<Block*>());
    for (Block* block : blocks_) block->idle = 0;
    for (Place* place = free_; place != nullptr; place = next_of(place)) {
      Block* block = block_of(place);
      block->idle |= std::uint64_t{1} << (place - block->places);
    }
  }
  void trim() {
    find_idle();
    keep_those_in_use();
    std::size_t kept = 0;
    for (Block* block : blocks_) {
      if (block->idle != kAllIdle) {
        blocks_[kept++] = block;
      } else {
        release(block);
      }
    }
    blocks_.shrink_to(kept);
    set_trim_at();
  }
  // Removes the places of released blocks from the free list.
  void keep_those_in_use() {
    Place* place = free_;
    free_ = nullptr;
    idle_ = 0;
    for (Place* next = nullptr; place != nullptr; place = next) {
      next = next_of(place);
      if (block_of(place)->idle != kAllIdle) push(place);
    }
  }
  static Place* next_of(Place* place) {
    mark_used(place, sizeof(Place));
    Place* next = place->next;
    mark_unused(place, sizeof(Place));
    return next;
  }
  Block* block_of(Place* place) {
    void* memory = place;
    return *(std::ranges::upper_bound(blocks_, memory, std::less<void*>()) - 1);
  }

  Place* free_ = nullptr;
  std::size_t idle_ = 0;
  std::size_t trim_at_ = 0;
  Array<Block*> blocks_;
};

}  // namespace spate
