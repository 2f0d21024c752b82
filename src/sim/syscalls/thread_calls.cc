#include "sim/syscalls/thread_calls.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>

#include "sim/kernel/kernel.h"
#include "spate/offload.h"

namespace spate::sim {

namespace {

// The number of processors of each host.
constexpr int kProcessors = 2;

}  // namespace

// Waiters are checked again whenever another thread has run, so waking does nothing.
long futex(const long (&arguments)[6]) {
  if ((arguments[1] & FUTEX_CMD_MASK) != FUTEX_WAIT) return 0;
  auto* const word = reinterpret_cast<int*>(arguments[0]);  // NOLINT: the kernel's type.
  const auto changed = [word, old = static_cast<int>(arguments[2])] {
    return std::atomic_ref<int>(*word).load() != old;
  };
  if (changed()) return -EAGAIN;
  Kernel::current()->wait(changed, kForever);
  return 0;
}

}  // namespace spate::sim

using spate::Nanos;
using spate::sim::Kernel;
namespace sim = spate::sim;

// ThreadPool::shared() of the library, renamed by calls.txt.
spate::ThreadPool& spate_sim_system_pool() asm("spate_sim_system_pool");

// Each simulated host is one process with one pool.
spate::ThreadPool& spate::ThreadPool::shared() {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return spate_sim_system_pool();
  std::unique_ptr<ThreadPool>& pool = kernel->pools[kernel->host];
  if (pool == nullptr) pool = std::make_unique<ThreadPool>();
  return *pool;
}

extern "C" {

int spate_sim_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                             void* (*body)(void*), void* argument) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::pthread_create(thread, attributes, body, argument);
  *thread = static_cast<pthread_t>(kernel->start_thread(body, argument));
  return *thread == 0 ? EAGAIN : 0;
}

int spate_sim_pthread_join(pthread_t thread, void** result) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::pthread_join(thread, result);
  kernel->join_thread(static_cast<std::uint64_t>(thread));
  return 0;
}

// Names and processors of threads have no effect in a World.
int spate_sim_pthread_setname_np(pthread_t thread, const char* name) {
  return Kernel::current() == nullptr ? ::pthread_setname_np(thread, name) : 0;
}

int spate_sim_pthread_setaffinity_np(pthread_t thread, std::size_t size, const cpu_set_t* set) {
  return Kernel::current() == nullptr ? ::pthread_setaffinity_np(thread, size, set) : 0;
}

int spate_sim_sched_getaffinity(pid_t process, std::size_t size, cpu_set_t* set) {
  if (Kernel::current() == nullptr) return ::sched_getaffinity(process, size, set);
  CPU_ZERO_S(size, set);
  for (int processor = 0; processor < sim::kProcessors; ++processor)
    CPU_SET_S(processor, size, set);
  return 0;
}

int spate_sim_sched_yield() {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::sched_yield();
  bool has_asked = false;
  kernel->wait([&has_asked] { return std::exchange(has_asked, true); }, spate::kForever);
  return 0;
}

int spate_sim_nanosleep(const timespec* span, timespec* left) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::nanosleep(span, left);
  const Nanos time = std::chrono::seconds{span->tv_sec} + Nanos{span->tv_nsec};
  kernel->wait([] { return false; }, spate::deadline_after(kernel->now(), time));
  return 0;
}

// ---- std::condition_variable

void spate_sim_condition_wait(std::condition_variable* condition,
                              std::unique_lock<std::mutex>* lock) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return condition->wait(*lock);
  lock->unlock();
  kernel->wait_for_notice(condition);
  lock->lock();
}

void spate_sim_condition_notify_one(std::condition_variable* condition) {
  if (Kernel* kernel = Kernel::current()) return kernel->notify(condition, Kernel::Notify::one);
  condition->notify_one();
}

void spate_sim_condition_notify_all(std::condition_variable* condition) {
  if (Kernel* kernel = Kernel::current()) return kernel->notify(condition, Kernel::Notify::all);
  condition->notify_all();
}

}  // extern "C"
