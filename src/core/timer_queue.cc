#include "core/timer_queue.h"

#include <algorithm>
#include <bit>

namespace spate {

TimerQueue::TimerQueue(std::size_t& parked) : parked_(parked), next_open_(INT64_MAX) {
  for (std::int64_t& start : start_) start = INT64_MAX;
}

// The heap's capacity is mostly for a case that never occurs, so little of it should be spare.
bool TimerQueue::start_slowly(TimerNode& node) {
  if (heap_.reserve_exactly(heap_.with_reserve(linked_ + 1))) return start(node);
  node.deadline = kParked;
  return false;
}

void TimerQueue::stop_slowly(TimerNode& node) {
  take_out(node);
  parked_ -= node.deadline == kParked;
  forget(node);
}

// The slow path of restart(): the node is inactive, in no bucket, or must leave its bucket for an
// earlier one. Outside of the buckets the order of a node determines its position, so it is removed
// before it gets a new order.
bool TimerQueue::move(TimerNode& node, std::int64_t deadline) {
  if (node.head.active == 0) {
    node.deadline = deadline;
    return start(node);
  }
  if (deadline >= node.deadline) {
    node.deadline = deadline;
    return true;
  }
  take_out(node);
  if (node.deadline == kParked) unpark(node);
  node.deadline = deadline;
  return place(node, node.head.extra & ~kBucketMask);
}

TimerNode* TimerQueue::pop_due_slowly(std::int64_t now) {
  const Entry* const due = settle(now);
  if (due == nullptr) return nullptr;
  TimerNode* const node = due->node;
  remove(due);
  forget(*node);
  return node;
}

// Returns the entry with the least key; nullptr if empty.
inline const TimerQueue::Entry* TimerQueue::first() const {
  const Entry* const from_run = run_head_ < run_.size() ? &run_[run_head_] : nullptr;
  if (heap_.empty()) return from_run;
  return from_run != nullptr && before(*from_run, heap_[0]) ? from_run : heap_.begin();
}

inline void TimerQueue::remove(const Entry* first) {
  if (first == heap_.begin()) return heap_remove(0);
  ++run_head_;
  run_close_front();
}

// Returns the first entry, if it is due. Entries before it whose node was postponed or parked are
// placed again or dropped. Buckets are opened one at a time, so that the run is short even if many
// timers are overdue.
inline const TimerQueue::Entry* TimerQueue::settle(std::int64_t now) {
  for (;;) {
    while (next_open_ <= std::min(now, next_key())) open(earliest_bucket());
    const Entry* const found = first();
    if (found == nullptr || found->key > now) break;
    if (found->node->deadline == found->key) return found;
    put_back(found);
  }
  keep_up(now);
  return nullptr;
}

void TimerQueue::look_for_due(std::int64_t now) { settle(now); }

void TimerQueue::put_back(const Entry* early) {
  TimerNode& node = *early->node;
  remove(early);
  if (node.deadline != kParked) return place(node);
  --parked_;
  forget(node);
}

void TimerQueue::stop_all() {
  const auto end = [this](TimerNode& node) {
    node.deadline = kParked;
    forget(node);
  };
  for (const Entry& entry : heap_) end(*entry.node);
  for (std::size_t i = run_head_; i < run_.size(); ++i) {
    if (run_[i].node != nullptr) end(*run_[i].node);
  }
  for (Array<TimerNode*>& bucket : buckets_) {
    for (TimerNode* node : bucket) end(*node);
    bucket.clear();
  }
  heap_.clear();
  run_.clear();
  run_head_ = 0;
  for (std::uint64_t& bits : occupied_) bits = 0;
  next_open_ = INT64_MAX;
  parked_ = 0;
}

// ---- the wheel

// If a bucket or the run cannot grow, the node goes to the heap, which has capacity for all timers.
bool TimerQueue::place_slowly(TimerNode& node, std::uint32_t order) {
  const bool is_near = node.deadline < horizon_;
  if (is_near && run_make_room() && run_append(node, order)) return true;
  if (!is_near && put_in_bucket_slowly(node, order)) return true;
  node.head.extra = order;
  heap_push(node);
  return true;
}

bool TimerQueue::put_in_bucket_slowly(TimerNode& node, std::uint32_t order) {
  const std::uint32_t bucket = bucket_of(node.deadline);
  Array<TimerNode*>& nodes = buckets_[bucket];
  if (!nodes.reserve(nodes.size() + 1)) return false;
  if (nodes.empty()) begin_bucket(bucket, node.deadline);
  push_into(bucket, node, order);
  return true;
}

void TimerQueue::begin_bucket(std::uint32_t bucket, std::int64_t deadline) {
  const int level = level_of(bucket);
  const int shift = kTickBits + level * kDigitBits;
  occupied_[level] |= std::uint64_t{1} << ((bucket - 1) % kSlots);
  start_[bucket] = deadline >> shift << shift;
  next_open_ = std::min(next_open_, start_[bucket]);
}

void TimerQueue::take_out(TimerNode& node) {
  const std::uint32_t bucket = node.head.extra & kBucketMask;
  if (bucket == 0) return heap_remove(node.head.active - 1);
  if (bucket == kRun) return run_remove(node.head.active - 1);
  Array<TimerNode*>& nodes = buckets_[bucket];
  take_from(nodes, node);
  if (nodes.empty()) {
    occupied_[level_of(bucket)] &= ~(std::uint64_t{1} << ((bucket - 1) % kSlots));
    if (start_[bucket] == next_open_) find_next_open();
  }
}

// Moves the nodes of a bucket to their current places.
void TimerQueue::open(std::uint32_t bucket) {
  const int level = level_of(bucket);
  const std::int64_t length = std::int64_t{1} << (kTickBits + level * kDigitBits);
  const std::int64_t start = start_[bucket];
  horizon_ = level == 0 ? start + length : start;
  Array<TimerNode*> nodes(std::move(buckets_[bucket]));
  occupied_[level] &= ~(std::uint64_t{1} << ((bucket - 1) % kSlots));
  find_next_open();
  drop_parked(nodes);
  if (level == 0) return sort_into_run(nodes);
  // A few nodes go directly into the heap: with few timers, finer buckets would cost a wake-up per
  // level.
  const bool few = nodes.size() <= kFew;
  for (TimerNode* node : nodes) {
    if (few && node->deadline - start < length) {
      node->head.extra &= ~kBucketMask;
      heap_push(*node);
    } else {
      place(*node);
    }
  }
}

void TimerQueue::drop_parked(Array<TimerNode*>& nodes) {
  if (parked_ == 0) return;
  std::size_t kept = 0;
  for (TimerNode* node : nodes) {
    if (node->deadline == kParked) {
      --parked_;
      forget(*node);
    } else {
      nodes[kept++] = node;
    }
  }
  nodes.shrink_to(kept);
}

// Moves the horizon to the end of the tick that contains `now`.
void TimerQueue::move_horizon(std::int64_t now) {
  const std::int64_t target = (now >> kTickBits << kTickBits) + (std::int64_t{1} << kTickBits);
  while (next_open_ < target) open(earliest_bucket());
  horizon_ = target;
}

// The buckets of a level are ordered by their digit, since none is behind the horizon. At equal
// starts the coarser one is first: its nodes may belong into the finer one.
std::uint32_t TimerQueue::earliest_bucket() const {
  std::uint32_t earliest = 0;
  for (int level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    const auto bucket =
        static_cast<std::uint32_t>(1 + level * kSlots + std::countr_zero(occupied_[level]));
    if (earliest == 0 || start_[bucket] <= start_[earliest]) earliest = bucket;
  }
  return earliest;
}

void TimerQueue::find_next_open() { next_open_ = start_[earliest_bucket()]; }

// ---- the run

// Adds the nodes of an opened bucket: none is due before the entries already in the run.
void TimerQueue::sort_into_run(const Array<TimerNode*>& nodes) {
  const std::size_t first = run_.size();
  const bool has_room = run_.reserve(first + nodes.size());
  for (TimerNode* node : nodes) {
    if (has_room && node->deadline < horizon_) {
      run_.push_reserved({node->deadline, node});
    } else {
      place(*node);
    }
  }
  std::sort(run_.begin() + first, run_.end(), before);
  for (std::size_t i = first; i < run_.size(); ++i) {
    Node& head = run_[i].node->head;
    head.active = static_cast<std::uint32_t>(i) + 1;
    head.extra = (head.extra & ~kBucketMask) | kRun;
  }
}

bool TimerQueue::run_make_room() {
  if (run_.size() < run_.capacity()) return true;
  if (run_head_ > run_.size() / 2) run_move_to_front();
  return run_.reserve(run_.size() + 1);
}

void TimerQueue::run_remove(std::size_t i) {
  run_[i].node = nullptr;
  while (run_.size() > run_head_ && run_.back().node == nullptr) run_.pop();
  run_close_front();
}

void TimerQueue::run_close_front() {
  while (run_head_ < run_.size() && run_[run_head_].node == nullptr) ++run_head_;
  if (run_head_ < run_.size()) return;
  run_.clear();
  run_head_ = 0;
}

void TimerQueue::run_move_to_front() {
  std::size_t kept = 0;
  for (std::size_t i = run_head_; i < run_.size(); ++i) {
    if (run_[i].node == nullptr) continue;
    run_[kept++] = run_[i];
    run_[kept - 1].node->head.active = static_cast<std::uint32_t>(kept);
  }
  run_.shrink_to(kept);
  run_head_ = 0;
}

// ---- the heap

bool TimerQueue::before(const Entry& a, const Entry& b) {
  if (a.key != b.key) return a.key < b.key;
  return is_earlier(a.node->head.extra, b.node->head.extra);
}

void TimerQueue::heap_push(TimerNode& node) {
  heap_.push_reserved({});  // Capacity was reserved by start().
  sift_up(heap_.size() - 1, {node.deadline, &node});
}

void TimerQueue::heap_remove(std::size_t hole) {
  const Entry last = heap_.back();
  heap_.pop();
  if (hole == heap_.size()) return;
  if (hole > 0 && before(last, heap_[(hole - 1) / 4])) {
    sift_up(hole, last);
  } else {
    sift_down(hole, last);
  }
}

void TimerQueue::sift_up(std::size_t hole, Entry entry) {
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!before(entry, heap_[parent])) break;
    heap_set(hole, heap_[parent]);
    hole = parent;
  }
  heap_set(hole, entry);
}

void TimerQueue::sift_down(std::size_t hole, Entry entry) {
  const std::size_t size = heap_.size();
  for (std::size_t child = 4 * hole + 1; child < size; child = 4 * hole + 1) {
    const std::size_t end = child + 4 < size ? child + 4 : size;
    std::size_t least = child;
    for (std::size_t i = child + 1; i < end; ++i) {
      if (before(heap_[i], heap_[least])) least = i;
    }
    if (!before(heap_[least], entry)) break;
    heap_set(hole, heap_[least]);
    hole = least;
  }
  heap_set(hole, entry);
}

}  // namespace spate
