#pragma once

// A clock that only the program moves. The executable's own definitions of the C library's clocks
// and waiting functions come before those of libc for every library that it has loaded, so both the
// original and the drop-in live in this time, unchanged: a wait with nothing ready does not block
// but moves the clock on. So a script of hours takes microseconds, and comes out the same each
// time.
//
// Every poll also takes a tick, so that a time that is due now has passed at the next. A wait ends
// at a whole millisecond, the next that an exact wait or a rounded one can end at, so that a
// library whose waits are more exact than epoll_wait()'s, or in two parts, ends at the same time.
// For that to hold the program chooses deadlines that are half a millisecond or more past a whole
// one, and makes fewer than 500 looks between two waits.
//
// The events of an epoll set are sorted by descriptor: the kernel's order would depend on how
// often, and in which order, a library called epoll_ctl().

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { kMicrosecond = 1000, kMillisecond = 1000000, kTick = kMicrosecond };

static const int64_t kSecond = 1000000000;
static const int64_t kMonotonicStart = 1000000000000;
// In the future: timers on the kernel's real clock never expire.
static const int64_t kRealAhead = 2100000000000000000 - 1000000000000;
static const int64_t kForever = INT64_MAX;

static int64_t virtual_now = 1000000000000;
static int64_t virtual_tick = kTick;
static int64_t virtual_wall_jump;  // How far the wall clock was set forward.

static inline void virtual_advance(int64_t nanoseconds) { virtual_now += nanoseconds; }

static struct timespec virtual_timespec(int64_t nanoseconds) {
  return (struct timespec){.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
}

// Nothing is ready: advances the clock to the end of the wait.
static int sleep_to_a_millisecond(int64_t nanoseconds, bool is_rounded) {
  if (nanoseconds == kForever) {
    printf("waits for ever\n");
    fflush(stdout);
    _exit(3);
  }
  if (nanoseconds <= 10 * kTick) {  // A remainder of rounding: no program waits for so little.
    virtual_now += nanoseconds;
    return 0;
  }
  const int64_t end = virtual_now + nanoseconds + (is_rounded ? 0 : kMillisecond - 1);
  virtual_now = end / kMillisecond * kMillisecond;
  return 0;
}

// Called for a wait when nothing is ready; returns the wait's result.
static int (*virtual_sleep)(int64_t nanoseconds, bool is_rounded) = sleep_to_a_millisecond;

static int64_t nanoseconds_of(const struct timespec* spec) {
  return spec == NULL ? kForever : spec->tv_sec * kSecond + spec->tv_nsec;
}

// --- Clocks. ---

int clock_gettime(clockid_t clock, struct timespec* spec) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      *spec = virtual_timespec(virtual_now + kRealAhead + virtual_wall_jump);
      return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      *spec = virtual_timespec(virtual_now);
      return 0;
    default:
      return (int)syscall(SYS_clock_gettime, clock, spec);
  }
}

int gettimeofday(struct timeval* restrict value, void* restrict zone) {
  (void)zone;
  const struct timespec spec = virtual_timespec(virtual_now + kRealAhead + virtual_wall_jump);
  *value = (struct timeval){.tv_sec = spec.tv_sec, .tv_usec = spec.tv_nsec / kMicrosecond};
  return 0;
}

int nanosleep(const struct timespec* wanted, struct timespec* left) {
  (void)left;
  virtual_now += nanoseconds_of(wanted);
  return 0;
}

// --- Waiting: poll at once, and advance the clock if nothing is ready. ---

static int after_look(long count, int64_t timeout, bool is_rounded) {
  const int answer = count == 0 ? virtual_sleep(timeout, is_rounded) : (int)count;
  virtual_now += virtual_tick;
  return answer;
}

static int64_t nanoseconds_of_milliseconds(int milliseconds) {
  return milliseconds < 0 ? kForever : (int64_t)milliseconds * kMillisecond;
}

// libevent begins with a descriptor by chance when several are ready. So only one is.
static long poll_look(struct pollfd* fds, nfds_t count, const sigset_t* mask) {
  const struct timespec now = {0};
  const long ready = syscall(SYS_ppoll, fds, count, &now, mask, 8);
  if (ready < 2 || !getenv("DIFFERENTIAL_ONE_READY")) return ready;
  int lowest = -1;
  for (nfds_t i = 0; i < count; i++) {
    if (fds[i].revents != 0 && (lowest < 0 || fds[i].fd < lowest)) lowest = fds[i].fd;
  }
  for (nfds_t i = 0; i < count; i++) {
    if (fds[i].fd != lowest) fds[i].revents = 0;
  }
  return 1;
}

static long select_look(int end, fd_set* read, fd_set* write, fd_set* except) {
  struct timespec now = {0};
  fd_set* const sets[] = {read, write, except};
  const long ready = syscall(SYS_pselect6, end, read, write, except, &now, NULL);
  if (ready < 2 || !getenv("DIFFERENTIAL_ONE_READY")) return ready;
  int lowest = -1;
  long left = 0;
  for (int fd = 0; fd < end; fd++) {
    for (int i = 0; i < 3; i++) {
      if (!sets[i] || !FD_ISSET(fd, sets[i])) continue;
      if (lowest < 0) lowest = fd;
      if (fd == lowest) {
        left++;
      } else {
        FD_CLR(fd, sets[i]);
      }
    }
  }
  return left;
}

int poll(struct pollfd* fds, nfds_t count, int milliseconds) {
  return after_look(poll_look(fds, count, NULL), nanoseconds_of_milliseconds(milliseconds), true);
}

int ppoll(struct pollfd* fds, nfds_t count, const struct timespec* timeout, const sigset_t* mask) {
  return after_look(poll_look(fds, count, mask), nanoseconds_of(timeout), false);
}

int select(int end, fd_set* read, fd_set* write, fd_set* except, struct timeval* timeout) {
  const int64_t wait =
      timeout == NULL ? kForever : timeout->tv_sec * kSecond + timeout->tv_usec * kMicrosecond;
  return after_look(select_look(end, read, write, except), wait, false);
}

int pselect(int end, fd_set* read, fd_set* write, fd_set* except, const struct timespec* timeout,
            const sigset_t* mask) {
  (void)mask;
  return after_look(select_look(end, read, write, except), nanoseconds_of(timeout), false);
}

// libevent waits by a timerfd if its timers are precise, which would be in real time.
int timerfd_create(clockid_t clock, int flags) {
  if (!getenv("EVENT_PRECISE_TIMER")) return (int)syscall(SYS_timerfd_create, clock, flags);
  errno = ENOSYS;
  return -1;
}

// --- epoll: finds the descriptor of an event, from the calls of epoll_ctl(). ---

typedef struct EpollEntry {
  int set;
  int fd;
  uint64_t data;
} EpollEntry;

enum { kEpollEntries = 4096 };
static EpollEntry epoll_entries[kEpollEntries];
static int epoll_entry_count;

static EpollEntry* epoll_entry(int set, int fd) {
  for (int i = 0; i < epoll_entry_count; i++) {
    if (epoll_entries[i].set == set && epoll_entries[i].fd == fd) {
      return &epoll_entries[i];
    }
  }
  if (epoll_entry_count == kEpollEntries) {
    abort();
  }
  EpollEntry* entry = &epoll_entries[epoll_entry_count++];
  *entry = (EpollEntry){.set = set, .fd = fd, .data = 0};
  return entry;
}

int epoll_ctl(int set, int operation, int fd, struct epoll_event* event) {
  const long result = syscall(SYS_epoll_ctl, set, operation, fd, event);
  if (result == 0 && operation != EPOLL_CTL_DEL) {
    for (int i = 0; i < epoll_entry_count; i++) {  // Removes entries of closed descriptors.
      if (epoll_entries[i].set == set && epoll_entries[i].data == event->data.u64) {
        epoll_entries[i].data = UINT64_MAX;
      }
    }
    epoll_entry(set, fd)->data = event->data.u64;
  }
  return (int)result;
}

static int epoll_sorted_set;

static int fd_of_event(const struct epoll_event* event) {
  for (int i = 0; i < epoll_entry_count; i++) {
    if (epoll_entries[i].set == epoll_sorted_set && epoll_entries[i].data == event->data.u64) {
      return epoll_entries[i].fd;
    }
  }
  return -1;
}

static int by_fd(const void* left, const void* right) {
  return fd_of_event(left) - fd_of_event(right);
}

static long epoll_look(int set, struct epoll_event* events, int capacity) {
  const long count = syscall(SYS_epoll_pwait, set, events, capacity, 0, NULL, 8);
  if (count > 1) {
    epoll_sorted_set = set;
    qsort(events, (size_t)count, sizeof *events, by_fd);
  }
  return count;
}

int epoll_wait(int set, struct epoll_event* events, int capacity, int milliseconds) {
  return after_look(epoll_look(set, events, capacity), nanoseconds_of_milliseconds(milliseconds),
                    true);
}

int epoll_pwait2(int set, struct epoll_event* events, int capacity, const struct timespec* timeout,
                 const sigset_t* mask) {
  (void)mask;
  return after_look(epoll_look(set, events, capacity), nanoseconds_of(timeout), false);
}
