// A thread that the library starts in a World. It is a real thread, so that thread-local state
// works. But only one thread of a World runs at a time, until it waits, and the World selects the
// next one.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <functional>
#include <memory>

#include "spate/time.h"

namespace spate::sim {

class Kernel;

// Uses the system's semaphore. C++ semaphores are inline functions with one copy per program, whose
// system calls would come to the World.
class Baton {
 public:
  Baton() { ::sem_init(&semaphore_, 0, 0); }
  ~Baton() { ::sem_destroy(&semaphore_); }
  Baton(const Baton&) = delete;
  Baton& operator=(const Baton&) = delete;
  void give() { ::sem_post(&semaphore_); }
  void take() {
    while (::sem_wait(&semaphore_) < 0) {  // Interrupted by a signal handler.
    }
  }

 private:
  sem_t semaphore_;
};

class Thread {
 public:
  using Body = void* (*)(void*);
  // Returns whether the awaited condition holds; called repeatedly.
  using Ready = std::function<bool()>;

  // Makes a thread that begins at `time` or later. nullptr if the system starts no more.
  static std::unique_ptr<Thread> start(Kernel& kernel, Body body, void* argument, Nanos time);
  // The thread must have ended.
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Returns the calling thread; nullptr is the World's own.
  static Thread* current();

  int host() const { return host_; }
  bool has_ended() const { return has_ended_; }
  // Called when its host crashes.
  void crash() { has_crashed_ = true; }
  bool has_crashed() const { return has_crashed_; }

  // ---- the World's side
  // Returns whether it can run.
  bool is_due() const;
  // Returns when it runs at the latest.
  Nanos limit() const { return limit_; }
  // Runs it until it waits or ends.
  void go_on();

  // ---- the thread's side
  // Waits until `ready()` or `limit`. The World advances meanwhile.
  void wait(Ready ready, Nanos limit);
  // Waits until `condition` is notified.
  void wait_for_notice(const void* condition);

  // Returns whether it waits for `condition`, and was not notified yet.
  bool waits_for(const void* condition) const { return condition_ == condition && !is_notified_; }
  // Resumes it, at `time` or later. Times are ignored during a teardown.
  void notify(Nanos time);

  int failed_polls = 0;  // Kernel::failed_polls() of this thread.

 private:
  bool may_end() const;
  Thread(Kernel& kernel, Body body, void* argument, Nanos time);
  static void* run(void* self);

  Kernel& kernel_;
  const int host_;
  const Body body_;
  void* const argument_;
  pthread_t id_{};
  Baton turn_;
  Baton has_waited_;  // Or has ended.
  Ready ready_;
  Nanos limit_;
  const void* condition_ = nullptr;
  bool is_notified_ = true;
  bool has_ended_ = false;
  bool has_crashed_ = false;
};

}  // namespace spate::sim
