// TimerQueue: pending timers, ordered by deadline only when that is about to matter.
//
// Deadlines beyond the horizon lie in a hierarchical wheel: eight levels of 64 buckets, each level
// 64 times coarser than the one below, a bucket of the lowest being one tick (2^20 ns, about a
// millisecond). A bucket is an unordered array of nodes. The horizon is never more than a tick
// ahead of the clock; as time passes, buckets are opened, and their nodes go to a finer bucket or,
// sorted, into the run. What is armed before the horizon goes to the end of the run if it fits
// there, else into a 4-ary heap with cached keys, which is nearly always small.
//
// What makes postponing one store: where a node stands says only that it need not be looked at
// before. A bucket has its start, an entry of the run or the heap its key, and neither is after the
// deadline of the node; what is looked at too early is placed anew. So a restart to a later
// deadline compares with the one before, stores, and is done; an idle timeout that is reset on each
// message is touched by the queue once in a while and not per message. In a bucket it may even be
// shortened for nothing, as long as the bucket's start is not passed. park() goes as far with
// stopping.
//
// docs/design.md has the measurement against a plain 4-ary heap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/array.h"
#include "spate/node.h"

namespace spate {

class TimerQueue {
 public:
  // `parked`, from zero on, is how many nodes are parked: whoever parks one itself counts it there.
  explicit TimerQueue(std::size_t& parked);

  // How many will expire.
  std::size_t size() const { return linked_ - parked_; }

  // Queues an inactive node by its deadline. False when memory runs out; it is kParked then.
  // Inlined with all that it does as a rule, so that nothing is saved for the rare rest.
  [[gnu::always_inline]] bool start(TimerNode& node) {
    if (linked_ == heap_.capacity()) [[unlikely]]
      return start_with_care(node);
    ++linked_;
    return place(node, next_order());
  }
  void stop(TimerNode& node);
  // Stops too, but leaves the node linked, to be dropped when it is looked at. It has to be stopped
  // before its memory goes.
  void park(TimerNode& node) {
    if (node.head.active == 0 || node.deadline == kParked) return;
    ++parked_;
    node.deadline = kParked;
  }
  // Sets the deadline of a node, and starts it if it is not live. Only the latter can fail.
  bool restart(TimerNode& node, std::int64_t deadline) {
    return postpone(node, deadline) || move(node, deadline);
  }
  // The fast case of restart(), of a node in a bucket; false if it is another. For a live node it
  // writes nothing of the queue: with many timers that would cost more than all the rest, because
  // the address of such a write comes from a timer that is not in the cache, and everything after
  // has to wait for it.
  bool postpone(TimerNode& node, std::int64_t deadline) {
    if (deadline < start_[node.head.extra & kBucketMask]) return false;
    if (node.deadline == kParked) unpark(node);
    node.deadline = deadline;
    return true;
  }

  // When pop_due() has to be called next; INT64_MAX if there are no timers. Never later than the
  // earliest deadline.
  std::int64_t next_deadline() const { return std::min(next_open_, next_key()); }
  // Sorts what comes near, which pop_due() does as well: what next_deadline() has not after `now`
  // is a deadline then. `now` never decreases.
  void advance(std::int64_t now) {
    keep_up(now);
    if (next_key() <= now) drop_early(now);
  }
  // The half of it that start() needs after a time without timers, and whether it would do nothing.
  void keep_up(std::int64_t now) {
    if (now >= horizon_) move_horizon(now);
  }
  bool has_kept_up(std::int64_t now) const { return now < horizon_; }
  // The next node whose deadline is not after `now`, made inactive; nullptr when there is none.
  // `now` never decreases.
  TimerNode* pop_due(std::int64_t now) {
    if (!heap_.empty() || run_head_ + 1 >= run_.size() || now >= horizon_)
      return pop_due_with_care(now);
    const Entry due = run_[run_head_];
    if (due.key > now || due.node->deadline != due.key) return pop_due_with_care(now);
    if (run_[++run_head_].node == nullptr) run_close_front();
    forget(*due.node);
    return due.node;
  }

  // Room for so many timers, so that start() cannot fail.
  bool reserve(std::size_t timers) { return heap_.reserve(timers); }
  // Shows every node that will expire, until one is answered with false; returns the last answer.
  template <class F>
  bool for_each(const F& show) const;
  // Makes all nodes inactive, and their deadlines kParked.
  void stop_all();

 private:
  struct Entry {
    std::int64_t key;  // The node's deadline when it was placed: comparing does not touch the node.
    TimerNode* node;
  };

  // A node's `extra` holds where it is in the low bits (a bucket, the run, or 0: the heap or
  // nowhere) and its order of arming above.
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
  // Orders wrap around, so it is their difference that has a sign.
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
  [[gnu::noinline]] void drop_early(std::int64_t now);
  [[gnu::noinline]] void put_back(const Entry* early);

  [[gnu::noinline]] TimerNode* pop_due_with_care(std::int64_t now);
  bool move(TimerNode& node, std::int64_t deadline);
  void place(TimerNode& node) { place_with_care(node, node.head.extra & ~kBucketMask); }
  // Always true, so that nothing is left to do after it.
  [[gnu::always_inline]] bool place(TimerNode& node, std::uint32_t order) {
    const bool placed =
        node.deadline < horizon_ ? run_append(node, order) : put_in_bucket(node, order);
    return placed || place_with_care(node, order);
  }
  // The rare halves of both.
  [[gnu::noinline]] bool start_with_care(TimerNode& node);
  [[gnu::noinline]] bool place_with_care(TimerNode& node, std::uint32_t order);
  void take_out(TimerNode& node);
  void forget(TimerNode& node) {
    node.head.active = 0;
    node.head.extra = 0;
    --linked_;
  }
  void drop_parked(Array<TimerNode*>& nodes);
  static std::uint32_t bucket_at(std::uint32_t level, std::int64_t deadline);
  std::uint32_t bucket_of(std::int64_t deadline) const;
  bool put_in_bucket(TimerNode& node, std::uint32_t order);
  bool put_in_bucket_with_care(TimerNode& node, std::uint32_t order);
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

  Array<Entry> heap_;  // Capacity for all timers, so that moving one into it cannot fail.
  Array<Entry> run_;   // In order. A removed entry has no node, but keeps its key.
  std::size_t run_head_ = 0;
  std::size_t linked_ = 0;
  std::size_t& parked_;
  std::uint32_t order_ = 0;
  std::int64_t horizon_ = 0;  // No deadline in the wheel is before it. A multiple of a tick.
  std::int64_t next_open_;    // The start of the earliest bucket that is not empty.
  std::uint64_t occupied_[kLevels] = {};
  // Of each bucket in use. INT64_MAX for 0 and kRun, which sends restart() to move().
  std::int64_t start_[kRun + 1];
  Array<TimerNode*> buckets_[kBuckets];
};

inline std::uint32_t TimerQueue::bucket_at(std::uint32_t level, std::int64_t deadline) {
  const auto digit =
      static_cast<std::uint64_t>(deadline) >> (kTickBits + level * kDigitBits) & (kSlots - 1);
  return static_cast<std::uint32_t>(1 + level * kSlots + digit);
}

// The level is that of the highest digit in which the deadline differs from the horizon. Few timers
// wait for longer than the third level reaches, more than four minutes, and which level it is can
// be foretold: the comparisons take less time than to find the digit.
inline std::uint32_t TimerQueue::bucket_of(std::int64_t deadline) const {
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
