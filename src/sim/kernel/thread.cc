#include "sim/kernel/thread.h"

#include <utility>

#include "sim/kernel/kernel.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

thread_local Thread* self = nullptr;

}  // namespace

Thread* Thread::current() { return self; }

Thread::Thread(Kernel& kernel, Body body, void* argument, Nanos time)
    : kernel_(kernel),
      host_(kernel.host),
      body_(body),
      argument_(argument),
      ready_([this] { return may_end(); }),
      limit_(time) {}

std::unique_ptr<Thread> Thread::start(Kernel& kernel, Body body, void* argument, Nanos time) {
  std::unique_ptr<Thread> made(new Thread(kernel, body, argument, time));
  if (::pthread_create(&made->id_, nullptr, run, made.get()) == 0) return made;
  made->has_ended_ = true;
  return nullptr;
}

Thread::~Thread() {
  SPATE_ASSERT(has_ended_,
               "what has threads (Workers, a ThreadPool) is destroyed before the World");
}

void* Thread::run(void* thread) {
  self = static_cast<Thread*>(thread);
  self->turn_.take();
  self->kernel_.serve_this_thread();
  self->body_(self->argument_);
  self->has_ended_ = true;
  self->has_waited_.give();
  return nullptr;
}

// ---- the World's side

bool Thread::is_due() const { return !has_ended_ && (kernel_.now() >= limit_ || ready_()); }

// Runs it until it waits or ends. After its end, also joins the system's thread.
void Thread::go_on() {
  const int host_before = std::exchange(kernel_.host, host_);
  turn_.give();
  has_waited_.take();
  kernel_.host = host_before;
  if (has_ended_) ::pthread_join(id_, nullptr);
}

bool Thread::may_end() const { return is_notified_ && kernel_.is_tearing_down; }

void Thread::notify(Nanos time) {
  is_notified_ = true;
  limit_ = time;
}

// ---- the thread's side

void Thread::wait(Ready ready, Nanos limit) {
  const int host_here = kernel_.host;
  ready_ = std::move(ready);
  limit_ = limit;
  has_waited_.give();
  turn_.take();
  kernel_.host = host_here;
}

void Thread::wait_for_notice(const void* condition) {
  condition_ = condition;
  is_notified_ = false;
  wait([this] { return may_end(); }, kForever);
  condition_ = nullptr;
}

}  // namespace spate::sim
