// The parts of sys/thread.h that differ between systems.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "sys/thread.h"

namespace spate::sys {

namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  return set;
}

}  // namespace

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

unsigned processors() {
  const cpu_set_t set = allowed();
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

}  // namespace spate::sys
