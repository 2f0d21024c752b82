// TimerQueue: pending timers, ordered by deadline only when that is about to matter.
//
// Deadlines beyond the horizon lie in a hierarchical wheel: eight levels of 64 buckets, each level
// 64 times coarser than the one below, a bucket of the lowest being one tick (2^20 ns, about a
// millisecond). A bucket is an unordered array of nodes. Deadlines before the horizon, which is
// never more than a tick ahead of the clock, lie in a 4-ary heap with cached keys, in exact order.
// As time passes, buckets are opened: their nodes go to a finer bucket or into the heap.
//
// What makes postponing one store: a node in a bucket needs only a deadline at or after the
// bucket's start, for it is looked at when the bucket is opened. So restart() compares with the
// start, stores, and is done; an idle timeout that is reset on each message is touched by the queue
// once per opening and not per message. It may even be shortened for nothing, as long as the
// bucket's start is not passed.
//
// docs/design.md has the measurement against a plain 4-ary heap.
#pragma once

#include <cstdint>

#include "core/array.h"
#include "spate/node.h"

namespace spate {

class TimerQueue {
 public:
  TimerQueue();

  std::size_t size() const { return count_; }

  // Queues an inactive node by its deadline. False, and nothing changed, when memory runs out.
  bool start(TimerNode& node);
  void stop(TimerNode& node);
  // Sets the deadline of a node, and starts it if it is inactive. Only the latter can fail.
  bool restart(TimerNode& node, std::int64_t deadline) {
    if (deadline >= start_[node.head.extra & kBucketMask]) {
      node.deadline = deadline;
      node.head.extra = (node.head.extra & kBucketMask) | next_order();
      return true;
    }
    return move(node, deadline);
  }

  // When pop_due() has to be called next; INT64_MAX if there are no timers. Never later than the
  // earliest deadline.
  std::int64_t next_deadline() const {
    return heap_.empty() || heap_[0].key > next_open_ ? next_open_ : heap_[0].key;
  }
  // The next node whose deadline is not after `now`, made inactive; nullptr when there is none.
  // `now` never decreases.
  TimerNode* pop_due(std::int64_t now);

  // Room for so many timers, so that start() cannot fail.
  bool reserve(std::size_t timers) { return heap_.reserve(timers); }
  // Makes all nodes inactive.
  void stop_all();

 private:
  struct Entry {
    std::int64_t key;  // The node's deadline: comparing does not touch the node.
    TimerNode* node;
  };

  // A node's `extra` holds its bucket in the low bits (0: it is in the heap or inactive) and its
  // order of arming above.
  static constexpr std::uint32_t kBucketBits = 10;
  static constexpr std::uint32_t kBucketMask = (1u << kBucketBits) - 1;
  static constexpr int kTickBits = 20;
  static constexpr int kDigitBits = 6;
  static constexpr int kSlots = 1 << kDigitBits;
  static constexpr int kLevels = 8;
  static constexpr std::uint32_t kBuckets = 1 + kLevels * kSlots;
  static constexpr std::size_t kFew = 32;
  static_assert(kTickBits + kLevels * kDigitBits >= 63 && kBuckets <= kBucketMask);

  std::uint32_t next_order() { return order_ += 1u << kBucketBits; }
  static bool before(const Entry& a, const Entry& b);

  bool move(TimerNode& node, std::int64_t deadline);
  void place(TimerNode& node);
  void take_out(TimerNode& node);
  std::uint32_t bucket_of(std::int64_t deadline) const;
  bool put_in_bucket(std::uint32_t bucket, TimerNode& node);
  void open(std::uint32_t bucket);
  void advance(std::int64_t now);
  std::uint32_t earliest_bucket() const;
  void find_next_open();
  static int level_of(std::uint32_t bucket) { return static_cast<int>((bucket - 1) / kSlots); }

  void heap_push(TimerNode& node);
  void heap_remove(std::size_t hole);
  void sift_up(std::size_t hole, Entry entry);
  void sift_down(std::size_t hole, Entry entry);
  void heap_set(std::size_t i, Entry entry) {
    heap_[i] = entry;
    entry.node->head.active = static_cast<std::uint32_t>(i) + 1;
  }

  Array<Entry> heap_;  // Capacity for all timers, so that moving one into it cannot fail.
  std::size_t count_ = 0;
  std::uint32_t order_ = 0;
  std::int64_t horizon_ = 0;  // No deadline in the wheel is before it. A multiple of a tick.
  std::int64_t next_open_;    // The start of the earliest bucket that is not empty.
  std::uint64_t occupied_[kLevels] = {};
  std::int64_t
      start_[kBuckets];  // Of each bucket in use; INT64_MAX for 0, which sends restart() to move().
  Array<TimerNode*> buckets_[kBuckets];
};

}  // namespace spate
