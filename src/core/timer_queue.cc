#include "core/timer_queue.h"

#include <bit>

namespace spate {

TimerQueue::TimerQueue() : next_open_(INT64_MAX) {
  for (std::int64_t& start : start_) start = INT64_MAX;
}

bool TimerQueue::start(TimerNode& node) {
  if (!heap_.reserve(count_ + 1)) return false;
  ++count_;
  node.head.extra = next_order();
  place(node);
  return true;
}

void TimerQueue::stop(TimerNode& node) {
  take_out(node);
  node.head.active = 0;
  node.head.extra = 0;
  --count_;
}

// The slow half of restart(): the node is inactive, in the heap, or has to leave its bucket for an
// earlier one.
bool TimerQueue::move(TimerNode& node, std::int64_t deadline) {
  if (node.head.active == 0) {
    node.deadline = deadline;
    return start(node);
  }
  take_out(node);
  node.deadline = deadline;
  node.head.extra = next_order();
  place(node);
  return true;
}

TimerNode* TimerQueue::pop_due(std::int64_t now) {
  if (now >= horizon_) advance(now);
  if (heap_.empty() || heap_[0].key > now) return nullptr;
  TimerNode* node = heap_[0].node;
  stop(*node);
  return node;
}

void TimerQueue::stop_all() {
  const auto deactivate = [](TimerNode& node) { node.head.active = node.head.extra = 0; };
  for (const Entry& entry : heap_) deactivate(*entry.node);
  heap_.clear();
  for (Array<TimerNode*>& bucket : buckets_) {
    for (TimerNode* node : bucket) deactivate(*node);
    bucket.clear();
  }
  for (std::uint64_t& bits : occupied_) bits = 0;
  next_open_ = INT64_MAX;
  count_ = 0;
}

// ---- the wheel

// Keeps the node's order of arming. A bucket that cannot grow is no reason to lose a timer: the
// heap has room for all.
void TimerQueue::place(TimerNode& node) {
  node.head.extra &= ~kBucketMask;
  if (node.deadline < horizon_ || !put_in_bucket(bucket_of(node.deadline), node)) heap_push(node);
}

// The level is that of the highest digit in which the deadline differs from the horizon.
std::uint32_t TimerQueue::bucket_of(std::int64_t deadline) const {
  const auto difference = static_cast<std::uint64_t>(deadline ^ horizon_) >> kTickBits | 1;
  const int level = (63 - std::countl_zero(difference)) / kDigitBits;
  const auto digit =
      static_cast<std::uint64_t>(deadline) >> (kTickBits + level * kDigitBits) & (kSlots - 1);
  return static_cast<std::uint32_t>(1 + level * kSlots + static_cast<int>(digit));
}

bool TimerQueue::put_in_bucket(std::uint32_t bucket, TimerNode& node) {
  Array<TimerNode*>& nodes = buckets_[bucket];
  if (!nodes.push(&node)) return false;
  if (nodes.size() == 1) {
    const int level = level_of(bucket);
    const int shift = kTickBits + level * kDigitBits;
    occupied_[level] |= std::uint64_t{1} << ((bucket - 1) % kSlots);
    start_[bucket] = node.deadline >> shift << shift;
    if (start_[bucket] < next_open_) next_open_ = start_[bucket];
  }
  node.head.active = static_cast<std::uint32_t>(nodes.size());
  node.head.extra |= bucket;
  return true;
}

void TimerQueue::take_out(TimerNode& node) {
  const std::uint32_t bucket = node.head.extra & kBucketMask;
  if (bucket == 0) return heap_remove(node.head.active - 1);
  Array<TimerNode*>& nodes = buckets_[bucket];
  TimerNode* last = nodes.back();
  nodes[node.head.active - 1] = last;
  last->head.active = node.head.active;
  nodes.pop();
  if (nodes.empty()) {
    occupied_[level_of(bucket)] &= ~(std::uint64_t{1} << ((bucket - 1) % kSlots));
    if (start_[bucket] == next_open_) find_next_open();
  }
}

// Moves what a bucket holds to where it belongs by now. Few nodes go straight into the heap:
// spreading them over finer buckets would cost a sparse loop a wake-up for each level.
void TimerQueue::open(std::uint32_t bucket) {
  const int level = level_of(bucket);
  const std::int64_t length = std::int64_t{1} << (kTickBits + level * kDigitBits);
  const std::int64_t end = start_[bucket] + length;
  horizon_ = level == 0 ? end : start_[bucket];
  Array<TimerNode*> nodes(std::move(buckets_[bucket]));
  occupied_[level] &= ~(std::uint64_t{1} << ((bucket - 1) % kSlots));
  find_next_open();
  const bool straight = nodes.size() <= kFew;
  for (TimerNode* node : nodes) {
    if (straight && node->deadline < end) {
      node->head.extra &= ~kBucketMask;
      heap_push(*node);
    } else {
      place(*node);
    }
  }
}

// Brings the horizon to the end of the tick that `now` lies in.
void TimerQueue::advance(std::int64_t now) {
  const std::int64_t target = (now >> kTickBits << kTickBits) + (std::int64_t{1} << kTickBits);
  while (next_open_ < target) open(earliest_bucket());
  horizon_ = target;
}

// Each level's buckets come in the order of their digits, since none is left behind the horizon. At
// equal starts the coarser goes first: what it holds may belong into the finer.
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

// ---- the heap

bool TimerQueue::before(const Entry& a, const Entry& b) {
  if (a.key != b.key) return a.key < b.key;
  // Orders wrap around, so it is their difference that has a sign.
  return static_cast<std::int32_t>(a.node->head.extra - b.node->head.extra) < 0;
}

void TimerQueue::heap_push(TimerNode& node) {
  heap_.push({});  // Has room: start() reserved it.
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
