// TimerQueue: pending timers, sorted by deadline only when they are nearly due.
//
// Deadlines beyond the horizon are in a hierarchical wheel: eight levels of 64 buckets, each level
// 64 times coarser than the one below. A bucket of the lowest level is one tick (2^20 ns, about a
// millisecond). A bucket is an unordered array of nodes. The horizon is never more than a tick
// ahead of the clock. As time passes, buckets are opened, and their nodes go to a finer bucket or,
// sorted, into the run. A timer that is started before the horizon goes to the end of the run if it
// fits there, otherwise into a 4-ary heap with cached keys, which is nearly always small.
//
// Postponing is one store, because a node's place is only a lower bound: the start of its bucket,
// or the key of its entry in the run or the heap, is never after its deadline. A node that is
// reached too early is placed again. So a restart to a later deadline compares and stores, and an
// idle timeout that is reset on each message rarely touches the queue. Inside a bucket a deadline
// may even be shortened by a store, down to the bucket's start. park() does the same for stopping.
//
// docs/design.md has the measurement against a plain 4-ary heap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/array.h"
#include "spate/layer/node.h"

namespace spate {

class TimerQueue {
 public:
  // `parked`, initially zero, is the number of parked nodes: code that parks a node itself counts
  // it there.
  explicit TimerQueue(std::size_t& parked);

  // Returns how many timers will expire.
  std::size_t size() const { return linked_ - parked_; }

  // Queues an inactive node by its deadline. False when memory runs out; the deadline is kParked
  // then. The fast path is inlined completely, so that no registers are saved for the slow one.
  [[gnu::always_inline]] bool start(TimerNode& node) {
    if (linked_ == heap_.capacity()) [[unlikely]]
      return start_slowly(node);
    ++linked_;
    return place(node, next_order());
  }
  // The fast path is inlined: neither parked nor the last node of a bucket.
  [[gnu::always_inline]] void stop(TimerNode& node) {
    Array<TimerNode*>& nodes = buckets_[node.head.extra & kBucketMask];
    if (nodes.size() <= 1 || node.deadline == kParked) return stop_slowly(node);
    take_from(nodes, node);
    forget(node);
  }
  // Stops, but leaves the node linked, to be dropped when it is reached. It must be stopped before
  // its memory is freed.
  void park(TimerNode& node) {
    if (node.head.active == 0 || node.deadline == kParked) return;
    ++parked_;
    node.deadline = kParked;
  }
  // Sets the deadline of a node, and starts it if it is inactive. Only the latter can fail.
  bool restart(TimerNode& node, std::int64_t deadline) {
    return postpone(node, deadline) || move(node, deadline);
  }
  // The fast path of restart(), for a node in a bucket; false if it does not apply. For a live node
  // it writes nothing of the queue. With many timers such a write would cost more than the rest,
  // because its address depends on a node that is not in the cache, and all later instructions
  // would wait for it.
  bool postpone(TimerNode& node, std::int64_t deadline) {
    if (deadline < start_[node.head.extra & kBucketMask]) return false;
    if (node.deadline == kParked) unpark(node);
    node.deadline = deadline;
    return true;
  }

  // Returns when pop_due() must be called next; INT64_MAX without timers. Never later than the
  // earliest deadline.
  std::int64_t next_deadline() const { return std::min(next_open_, next_key()); }
  // Opens near buckets until a timer is due, which pop_due() does as well: if next_deadline() is
  // then after `now`, it is a deadline. `now` never decreases.
  void advance(std::int64_t now) {
    if (now >= horizon_ || next_key() <= now) look_for_due(now);
  }
  // Opens all near buckets. start() needs this after turns without timers; has_kept_up() returns
  // whether it would do nothing.
  void keep_up(std::int64_t now) {
    if (now >= horizon_) move_horizon(now);
  }
  bool has_kept_up(std::int64_t now) const { return now < horizon_; }
  // Removes and returns the next node whose deadline is not after `now`; nullptr if none. `now`
  // never decreases.
  TimerNode* pop_due(std::int64_t now) {
    if (!heap_.empty() || run_head_ + 1 >= run_.size()) return pop_due_slowly(now);
    const Entry due = run_[run_head_];
    if (due.key > now || due.node->deadline != due.key) return pop_due_slowly(now);
    if (run_[++run_head_].node == nullptr) run_close_front();
    forget(*due.node);
    return due.node;
  }

  // Reserves capacity, so that start() cannot fail.
  bool reserve(std::size_t timers) { return heap_.reserve(timers); }
  // Visits every node that will expire, until `show` returns false; returns the last result.
  template <class F>
  bool for_each(const F& show) const;
  // Makes all nodes inactive, and their deadlines kParked.
  void stop_all();

 private:
  struct Entry {
    std::int64_t key;  // The node's deadline when it was placed: comparing keys does not touch the
                       // node.
    TimerNode* node;
  };

  // A node's `extra` has its place in the low bits (a bucket, the run, or 0: the heap or none) and
  // its order of starting above.
  static constexpr std::uint32_t kBucketBits = 10;
  static constexpr std::uint32_t kBucketMask = (1u << kBucketBits) - 1;
  static constexpr int kTickBits = 20;
  static constexpr int kDigitBits = 6;
  static constexpr int kSlots = 1 << kDigitBits;
  static constexpr int kLevels = 8;
  static constexpr std::uint32_t kBuckets = 1 + kLevels * kSlots;
  static constexpr std::uint32_t kRun = kBuckets;
  static constexpr std::size_t kFew = 32;
  static_assert(kTickBits + kLevels * kDigitBits >= 63 && kRun <= kBucketMask);

  std::uint32_t next_order() { return order_ += 1u << kBucketBits; }
  // Orders wrap around, so the sign of their difference decides.
  static bool is_earlier(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
  }
  static bool before(const Entry& a, const Entry& b);

  void unpark(TimerNode& node) {
    --parked_;
    node.head.extra = (node.head.extra & kBucketMask) | next_order();
  }
  std::int64_t next_key() const {
    std::int64_t next = INT64_MAX;
    if (!heap_.empty()) next = heap_[0].key;
    if (run_head_ < run_.size()) next = std::min(next, run_[run_head_].key);
    return next;
  }
  const Entry* first() const;
  void remove(const Entry* first);
  [[gnu::always_inline]] const Entry* settle(std::int64_t now);
  [[gnu::noinline]] void look_for_due(std::int64_t now);
  [[gnu::noinline]] void put_back(const Entry* early);

  [[gnu::noinline]] TimerNode* pop_due_slowly(std::int64_t now);
  bool move(TimerNode& node, std::int64_t deadline);
  void place(TimerNode& node) { place_slowly(node, node.head.extra & ~kBucketMask); }
  // Always true, so that it can be a tail call.
  [[gnu::always_inline]] bool place(TimerNode& node, std::uint32_t order) {
    const bool placed =
        node.deadline < horizon_ ? run_append(node, order) : put_in_bucket(node, order);
    return placed || place_slowly(node, order);
  }
  // The slow paths of both.
  [[gnu::noinline]] bool start_slowly(TimerNode& node);
  [[gnu::noinline]] bool place_slowly(TimerNode& node, std::uint32_t order);
  [[gnu::noinline]] void stop_slowly(TimerNode& node);
  void take_out(TimerNode& node);
  static void take_from(Array<TimerNode*>& nodes, TimerNode& node) {
    TimerNode* const last = nodes.back();
    nodes[node.head.active - 1] = last;
    last->head.active = node.head.active;
    nodes.pop();
  }
  void forget(TimerNode& node) {
    node.head.active = 0;
    node.head.extra = 0;
    --linked_;
  }
  void drop_parked(Array<TimerNode*>& nodes);
  static std::uint32_t bucket_at(std::uint32_t level, std::int64_t deadline);
  std::uint32_t bucket_of(std::int64_t deadline) const;
  bool put_in_bucket(TimerNode& node, std::uint32_t order);
  bool put_in_bucket_slowly(TimerNode& node, std::uint32_t order);
  void begin_bucket(std::uint32_t bucket, std::int64_t deadline);
  void push_into(std::uint32_t bucket, TimerNode& node, std::uint32_t order) {
    buckets_[bucket].push_reserved(&node);
    node.head.active = static_cast<std::uint32_t>(buckets_[bucket].size());
    node.head.extra = order | bucket;
  }
  void open(std::uint32_t bucket);
  void move_horizon(std::int64_t now);
  std::uint32_t earliest_bucket() const;
  void find_next_open();
  static int level_of(std::uint32_t bucket) { return static_cast<int>((bucket - 1) / kSlots); }

  void sort_into_run(const Array<TimerNode*>& nodes);
  bool run_append(TimerNode& node, std::uint32_t order);
  bool run_make_room();
  void run_remove(std::size_t i);
  void run_close_front();
  void run_move_to_front();

  void heap_push(TimerNode& node);
  void heap_remove(std::size_t hole);
  void sift_up(std::size_t hole, Entry entry);
  void sift_down(std::size_t hole, Entry entry);
  void heap_set(std::size_t i, Entry entry) {
    heap_[i] = entry;
    entry.node->head.active = static_cast<std::uint32_t>(i) + 1;
  }

  Array<Entry> heap_;  // Has capacity for all timers, so that moving one into it cannot fail.
  Array<Entry> run_;   // Sorted. A removed entry has no node, but keeps its key.
  std::size_t run_head_ = 0;
  std::size_t linked_ = 0;
  std::size_t& parked_;
  std::uint32_t order_ = 0;
  std::int64_t horizon_ = 0;  // No deadline in the wheel is before it. A multiple of a tick.
  std::int64_t next_open_;    // The start of the earliest nonempty bucket.
  std::uint64_t occupied_[kLevels] = {};
  // For each bucket in use. INT64_MAX for 0 and kRun, which sends restart() to move().
  std::int64_t start_[kRun + 1];
  Array<TimerNode*> buckets_[kRun + 1];  // 0 and kRun are empty: stop() takes the slow path.
};

inline std::uint32_t TimerQueue::bucket_at(std::uint32_t level, std::int64_t deadline) {
  const auto digit =
      static_cast<std::uint64_t>(deadline) >> (kTickBits + level * kDigitBits) & (kSlots - 1);
  return static_cast<std::uint32_t>(1 + level * kSlots + digit);
}

// The level is that of the highest digit in which the deadline differs from the horizon. Few timers
// are beyond the third level, more than four minutes, and the branches are predictable: they take
// less time than finding the digit.
[[gnu::always_inline]] inline std::uint32_t TimerQueue::bucket_of(std::int64_t deadline) const {
  const auto difference = static_cast<std::uint64_t>(deadline ^ horizon_) >> kTickBits;
  if (difference < 1u << kDigitBits) return bucket_at(0, deadline);
  if (difference < 1u << 2 * kDigitBits) return bucket_at(1, deadline);
  if (difference < 1u << 3 * kDigitBits) return bucket_at(2, deadline);
  const int highest = 63 ^ std::countl_zero(difference);
  return bucket_at(static_cast<std::uint32_t>(highest) / kDigitBits, deadline);
}

// False if the bucket is empty or full.
[[gnu::always_inline]] inline bool TimerQueue::put_in_bucket(TimerNode& node, std::uint32_t order) {
  const std::uint32_t bucket = bucket_of(node.deadline);
  const Array<TimerNode*>& nodes = buckets_[bucket];
  if (nodes.empty() || nodes.size() == nodes.capacity()) return false;
  push_into(bucket, node, order);
  return true;
}

// False if the node belongs before the end of the run, or there is no room.
[[gnu::always_inline]] inline bool TimerQueue::run_append(TimerNode& node, std::uint32_t order) {
  if (run_.size() == run_.capacity()) return false;
  if (!run_.empty()) {
    const Entry& last = run_.back();
    if (node.deadline < last.key) return false;
    if (node.deadline == last.key && is_earlier(order, last.node->head.extra)) return false;
  }
  run_.push_reserved({node.deadline, &node});
  node.head.active = static_cast<std::uint32_t>(run_.size());
  node.head.extra = order | kRun;
  return true;
}

template <class F>
bool TimerQueue::for_each(const F& show) const {
  const auto ends = [&show](TimerNode* node) {
    return node != nullptr && node->deadline != kParked && !show(*node);
  };
  for (const Entry& entry : heap_) {
    if (ends(entry.node)) return false;
  }
  for (std::size_t i = run_head_; i < run_.size(); ++i) {
    if (ends(run_[i].node)) return false;
  }
  for (const Array<TimerNode*>& bucket : buckets_) {
    for (TimerNode* node : bucket) {
      if (ends(node)) return false;
    }
  }
  return true;
}

}  // namespace spate
