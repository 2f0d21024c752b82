// The parts of sys/thread.h that differ between systems.
#include <unistd.h>
#if defined(__FreeBSD__) || defined(__OpenBSD__)
#include <pthread_np.h>
#endif

#include "sys/thread.h"

namespace spate::sys {

void Thread::set_name([[maybe_unused]] std::string_view name) {
#ifndef __APPLE__
  char cut[16] = {};
  name.copy(cut, sizeof(cut) - 1);
#ifdef __NetBSD__
  char format[] = "%s";
  ::pthread_setname_np(id_, format, cut);
#else
  ::pthread_set_name_np(id_, cut);
#endif
#endif
}

void Thread::pin(unsigned) {}

// The waiting thread destroys the Latch after it has locked the mutex, which this one has unlocked
// then.
void Latch::count_down() {
  pthread_mutex_lock(&guard_);
  if (--left_ == 0) pthread_cond_broadcast(&is_zero_);
  pthread_mutex_unlock(&guard_);
}

void Latch::wait() {
  pthread_mutex_lock(&guard_);
  while (left_ != 0) pthread_cond_wait(&is_zero_, &guard_);
  pthread_mutex_unlock(&guard_);
}

unsigned processors() {
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

}  // namespace spate::sys
