#include "sys/thread.h"

#include <sched.h>
#include <signal.h>

#include <memory>
#include <new>
#include <utility>

namespace spate::sys {

namespace {

struct Start {
  Thread::Body body;
  void* context;
};

void* run(void* start) {
  const std::unique_ptr<Start> owned(static_cast<Start*>(start));
  owned->body(owned->context);
  return nullptr;
}

pthread_key_t end_key;
bool has_end_key = false;
pthread_once_t end_key_once = PTHREAD_ONCE_INIT;

// A library that is unloaded must not leave a function registered.
[[gnu::destructor]] void delete_end_key() {
  if (std::exchange(has_end_key, false)) ::pthread_key_delete(end_key);
}

}  // namespace

long Thread::start(Body body, void* context) {
  auto* start = new (std::nothrow) Start{body, context};
  if (start == nullptr) return -ENOMEM;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(&id_, nullptr, run, start);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) delete start;
  runs_ = error == 0;
  return -error;
}

void yield() { ::sched_yield(); }

bool ThreadEnd::attach() {
  ::pthread_once(&end_key_once, [] { has_end_key = ::pthread_key_create(&end_key, on_end) == 0; });
  return has_end_key && ::pthread_setspecific(end_key, this) == 0;
}

// Called after the thread_locals, in one round with the destructors of other keys. Re-registering
// makes end() run in a second round, after all of them.
void ThreadEnd::on_end(void* self) {
  auto* ending = static_cast<ThreadEnd*>(self);
  if (!std::exchange(ending->was_asked_, true) && ending->attach()) return;
  ending->end();
}

}  // namespace spate::sys
