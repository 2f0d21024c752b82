// A thread that the library starts in a World. It is a thread of the system's, with all that a
// thread has of its own; but of a World's only one runs at a time, until it waits, and which one is
// next the World decides.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <functional>
#include <memory>

#include "spate/time.h"

namespace spate::sim {

class Kernel;

// The system's. That of C++ is made of inline functions, of which a program has one copy: the one
// in which the library's calls come to the World.
class Baton {
 public:
  Baton() { ::sem_init(&semaphore_, 0, 0); }
  ~Baton() { ::sem_destroy(&semaphore_); }
  Baton(const Baton&) = delete;
  Baton& operator=(const Baton&) = delete;
  void give() { ::sem_post(&semaphore_); }
  void take() {
    while (::sem_wait(&semaphore_) < 0) {  // A signal's handler has run.
    }
  }

 private:
  sem_t semaphore_;
};

class Thread {
 public:
  using Body = void* (*)(void*);
  // Whether what it waits for has come; asked again and again.
  using Ready = std::function<bool()>;

  // It begins not before `time`. nullptr if the system gives no more.
  static std::unique_ptr<Thread> start(Kernel& kernel, Body body, void* argument, Nanos time);
  // It has ended.
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // The calling one; nullptr is the World's own.
  static Thread* current();

  int host() const { return host_; }
  bool has_ended() const { return has_ended_; }
  // Its host has crashed.
  void crash() { has_crashed_ = true; }
  bool has_crashed() const { return has_crashed_; }

  // ---- the World's side
  // Whether it would go on.
  bool is_due() const;
  // When it will at the latest, if nothing comes before.
  Nanos limit() const { return limit_; }
  // Lets it run until it waits or ends.
  void go_on();

  // ---- its own side
  // Until `ready()` or `limit`. The World goes on meanwhile.
  void wait(Ready ready, Nanos limit);
  // Until somebody notifies `condition`.
  void wait_for_notice(const void* condition);

  // Whether it waits for `condition`, and has not been notified.
  bool waits_for(const void* condition) const { return condition_ == condition && !is_notified_; }
  // It goes on, not before `time`. Time does not count while the kernel hurries.
  void notify(Nanos time);

  int looks_in_vain = 0;  // Kernel::looks_in_vain() of this one.

 private:
  bool may_hurry() const;
  Thread(Kernel& kernel, Body body, void* argument, Nanos time);
  static void* run(void* self);

  Kernel& kernel_;
  const int host_;
  const Body body_;
  void* const argument_;
  pthread_t id_{};
  Baton turn_;
  Baton has_waited_;  // Or ended.
  Ready ready_;
  Nanos limit_;
  const void* condition_ = nullptr;
  bool is_notified_ = true;
  bool has_ended_ = false;
  bool has_crashed_ = false;
};

}  // namespace spate::sim
