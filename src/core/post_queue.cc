#include "core/post_queue.h"

#include <new>

#include "sys/memory.h"

namespace spate {

struct PostQueue::Cell {
  Cell* next;
  union {
    Task task;  // Alive while the cell is queued.
  };

  Cell() : next(nullptr) {}
  ~Cell() {}
};

// The calling thread's stock of unused cells, whatever loop they came from.
class PostQueue::CellCache {
 public:
  ~CellCache() { release(stock_); }

  static CellCache& of_this_thread() {
    static thread_local CellCache cache;
    return cache;
  }

  Cell* get(std::atomic<Cell*>& recycled) {
    if (stock_ == nullptr) stock_ = recycled.exchange(nullptr, std::memory_order_acquire);
    if (stock_ == nullptr) {
      void* block = sys::reallocate(nullptr, sizeof(Cell));
      return block == nullptr ? nullptr : new (block) Cell;
    }
    Cell* cell = stock_;
    stock_ = cell->next;
    return cell;
  }

  static void release(Cell* chain) {
    while (chain != nullptr) {
      Cell* next = chain->next;
      sys::release(chain);
      chain = next;
    }
  }

 private:
  Cell* stock_ = nullptr;
};

PostQueue::~PostQueue() {
  take_incoming();
  for (Cell* cell = first_; cell != nullptr; cell = cell->next) cell->task.~Task();
  CellCache::release(first_);
  CellCache::release(recycled_.exchange(nullptr, std::memory_order_acquire));
}

PostQueue::Pushed PostQueue::push(Task task) {
  Cell* cell = CellCache::of_this_thread().get(recycled_);
  if (cell == nullptr) return Pushed::out_of_memory;
  new (&cell->task) Task(std::move(task));
  Cell* top = incoming_.load(std::memory_order_relaxed);
  do {
    cell->next = top;
  } while (!incoming_.compare_exchange_weak(top, cell, std::memory_order_seq_cst,
                                            std::memory_order_relaxed));
  return top == nullptr ? Pushed::into_empty : Pushed::behind_others;
}

void PostQueue::take_incoming() {
  Cell* cell = incoming_.exchange(nullptr, std::memory_order_acquire);
  if (cell == nullptr) return;
  Cell* newest = cell;
  Cell* oldest = nullptr;
  while (cell != nullptr) {
    Cell* next = cell->next;
    cell->next = oldest;
    oldest = cell;
    cell = next;
  }
  (first_ == nullptr ? first_ : last_->next) = oldest;
  last_ = newest;
}

std::size_t PostQueue::run(std::size_t limit) {
  take_incoming();
  Cell* used = nullptr;
  Cell* used_last = nullptr;
  std::size_t count = 0;
  while (first_ != nullptr && count < limit) {
    Cell* cell = first_;
    first_ = cell->next;  // Before the call: it may run the loop, and so come here again.
    ++count;
    cell->task();
    cell->task.~Task();
    cell->next = used;
    if (used == nullptr) used_last = cell;
    used = cell;
  }
  if (used == nullptr) return count;
  used_last->next = recycled_.load(std::memory_order_relaxed);
  while (!recycled_.compare_exchange_weak(used_last->next, used, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  return count;
}

}  // namespace spate
