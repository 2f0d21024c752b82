// PostQueue: tasks from any thread, each called once, one thread's in its own order.
//
// Producers push cells onto a stack with one compare-and-swap; the loop takes the whole stack with
// one exchange and turns it around. Cells are recycled: the loop puts a used batch on a second
// stack, and a producer that has none left takes all of that. Both stacks are only ever pushed to
// and emptied whole, so there is no ABA problem.
#pragma once

#include <atomic>
#include <cstddef>

#include "spate/loop.h"

namespace spate {

class PostQueue {
 public:
  PostQueue() = default;
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue();

  enum class Pushed { out_of_memory, into_empty, behind_others };

  // Any thread. After `into_empty` the loop has to be woken; otherwise somebody has seen to that.
  Pushed push(Task task);

  // The loop's thread from here on.
  bool has_incoming() const { return incoming_.load() != nullptr; }
  bool empty() const { return first_ == nullptr && !has_incoming(); }
  // Calls what was posted until now, `limit` at most. Returns how many.
  std::size_t run(std::size_t limit);

 private:
  struct Cell;
  class CellCache;

  void take_incoming();

  std::atomic<Cell*> incoming_{nullptr};
  std::atomic<Cell*> recycled_{nullptr};
  Cell* first_ = nullptr;  // Taken and not yet called, in order.
  Cell* last_ = nullptr;
};

}  // namespace spate
