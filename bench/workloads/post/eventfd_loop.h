// The hand-written loop that the queues are tried on, in the manner of evpp and muduo: epoll sleeps
// until the eventfd is written, and only the first post since the last drain writes it.
//
//   struct Queue {
//     void push(std::function<void()>);  // from any thread
//     void drain();                      // on the loop's thread: run the queued tasks
//   };
#ifndef BENCH_WORKLOADS_POST_EVENTFD_LOOP_H
#define BENCH_WORKLOADS_POST_EVENTFD_LOOP_H

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <functional>

#include "post.h"

using Job = std::function<void()>;

template <class Queue>
class EventfdLoop {
 public:
  EventfdLoop() : poller_(epoll_create1(EPOLL_CLOEXEC)), eventfd_(eventfd(0, EFD_NONBLOCK)) {
    epoll_event event{EPOLLIN, {.fd = eventfd_}};
    epoll_ctl(poller_, EPOLL_CTL_ADD, eventfd_, &event);
  }

  ~EventfdLoop() {
    close(eventfd_);
    close(poller_);
  }

  EventfdLoop(const EventfdLoop&) = delete;
  EventfdLoop& operator=(const EventfdLoop&) = delete;

  void post(Job task) {
    queue_.push(std::move(task));
    // The push must be visible before the flag is looked at, or the loop could fall asleep on it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!notified_.load() && !notified_.exchange(true)) eventfd_write(eventfd_, 1);
  }

  void stop() {
    post([this] { stopped_ = true; });
  }

  void run() {
    while (!stopped_) {
      epoll_event event;
      if (epoll_wait(poller_, &event, 1, -1) != 1) continue;
      eventfd_t value;
      eventfd_read(eventfd_, &value);
      notified_.store(false);
      queue_.drain();
    }
  }

  static void version() { Queue::version(); }

 private:
  Queue queue_;
  const int poller_, eventfd_;
  bool stopped_ = false;
  alignas(64) std::atomic<bool> notified_{false};
};

#endif
