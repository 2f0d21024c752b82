// PostQueue: tasks from any thread. Each is called once; those of one thread are called in order.
//
// Each posting thread has its own lane (an SPSC queue): a chain of fixed segments that only the
// thread fills and only the loop empties. So producers never contend, and the loop reads tasks in
// the order in which they are in memory. A task is published by storing a count. Lanes and segments
// are recycled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "spate/loop.h"

namespace spate {

class PostQueue {
 public:
  PostQueue();
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue();

  // ---- any thread: finds its lane, gets a place for a task, and publishes the task. nullptr when
  // memory runs out. A published task is visible to every has_posts() that follows it in the single
  // order of these two and of Wakeup's announcements.
  class Lane;
  Lane* lane_of_this_thread();
  static Job* place_in(Lane& lane);
  void publish(Lane& lane);

  // ---- the loop's thread
  bool has_posts() const { return lanes_.load() != nullptr && find_posts(); }
  // Calls tasks, including those posted meanwhile, at most `limit`. Returns how many.
  std::size_t run(std::size_t limit);
  // Destroys the posted tasks, and from here on each new one, on the thread that posts it.
  void close();

 private:
  struct Segment;
  class LanesOfThread;

  bool find_posts() const;
  Lane* find_or_make_lane();
  void remove_abandoned();
  void drop_tasks(Lane& lane);

  const std::uint64_t id_;  // Unique among all queues of this process, dead ones included.
  std::atomic<Lane*> lanes_{nullptr};
  std::atomic<bool> is_closed_{false};
  std::mutex dropping_;  // After close(), a posting thread also removes its tasks.
  int running_ = 0;      // Depth: tasks may run the loop, and enter again.
};

}  // namespace spate
