// PostQueue: tasks from any thread, each called once, one thread's in its own order.
//
// Each thread that posts has a lane of its own: a chain of fixed arrays that it alone fills and the
// loop alone empties, so producers never meet, and the loop reads tasks in the order in which they
// lie in memory. What is published is a count, by one store. Lanes and arrays are recycled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "spate/loop.h"

namespace spate {

class PostQueue {
 public:
  PostQueue();
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue();

  // Any thread: its lane, a place to make a task in, and the word that it is there. Null when
  // memory runs out. What is published is visible to every has_posts() that comes after it in the
  // single order of these two and of Wakeup's announcements.
  class Lane;
  Lane* lane_of_this_thread();
  static Job* place_in(Lane& lane);
  static void publish(Lane& lane);

  // The loop's thread from here on.
  // After a run that called many it says yes without looking: each look takes a line of memory away
  // from a producer that is writing to it.
  bool has_posts() const { return lanes_.load() != nullptr && (is_busy_ || find_posts()); }
  // Calls what was posted, and what is posted meanwhile, `limit` at most. Returns how many.
  std::size_t run(std::size_t limit);

 private:
  struct Segment;
  class LanesOfThread;

  bool find_posts() const;
  Lane* find_or_make_lane();
  void remove_abandoned();

  const std::uint64_t id_;  // No other queue of this process, dead or alive, has it.
  std::atomic<Lane*> lanes_{nullptr};
  bool is_busy_ = false;  // The last run called many.
  int running_ = 0;       // Tasks may run the loop, and so come here again.
};

}  // namespace spate
