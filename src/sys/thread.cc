#include "sys/thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
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

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  return set;
}

}  // namespace

long Thread::start(Body body, void* context) {
  auto* start = new (std::nothrow) Start{body, context};
  if (start == nullptr) return -ENOMEM;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(&id_, nullptr, run, start);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) delete start;
  runs_ = error == 0;
  return -error;
}

void Thread::set_name(std::string_view name) {
  char cut[16] = {};
  name.copy(cut, sizeof(cut) - 1);
  ::pthread_setname_np(id_, cut);
}

void Thread::pin(unsigned index) {
  const cpu_set_t set = allowed();
  unsigned left = index % processors();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set) || left-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::pthread_setaffinity_np(id_, sizeof(one), &one);
    return;
  }
}

// The waiting thread may destroy the Latch once it is zero: the wake-up then goes to an address at
// which no thread waits.
void Latch::count_down() {
  static_assert(sizeof(left_) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  if (left_.fetch_sub(1) == 1) ::syscall(SYS_futex, &left_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Latch::wait() {
  for (int left = left_.load(); left != 0; left = left_.load())
    ::syscall(SYS_futex, &left_, FUTEX_WAIT_PRIVATE, left, nullptr);
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

unsigned processors() {
  const cpu_set_t set = allowed();
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

}  // namespace spate::sys
