// A library for LD_PRELOAD in which system calls begin late now and then, as on a busy machine, and
// readings of the clock too: a thread may lose its processor between any two instructions. Waits
// for events are also interrupted now and then, as by a signal or by work of the kernel.
// A test that passes only without them depends on time.
//
//   LATE_SHARE          the share of calls that are delayed or interrupted, 0 to 1; default: 0.02
//   LATE_MILLISECONDS   the longest delay; default: 12
//   LATE_SEED           the delays of a process depend on the seed and on its process id
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_uint_fast64_t call_number;
static uint64_t seed = 1;
static double share = 0.02;
static uint64_t longest_ns = 12000000;

__attribute__((constructor)) static void read_environment(void) {
  const char* text = getenv("LATE_SEED");
  if (text) seed = strtoull(text, NULL, 10);
  text = getenv("LATE_SHARE");
  if (text) share = strtod(text, NULL);
  text = getenv("LATE_MILLISECONDS");
  if (text && *text != '0') longest_ns = strtoull(text, NULL, 10) * 1000000;
}

// splitmix64.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// "openssl s_client" ends if its wait is interrupted, in some versions of TLS.
static bool may_interrupt(void) { return strcmp(program_invocation_short_name, "openssl") != 0; }

static uint64_t next_number(void) {
  return mix(mix(seed) + mix((uint64_t)getpid()) + call_number++);
}

// Whether a random number selects a call, of which a share is selected.
static bool selects(uint64_t number, double share_of_calls) {
  return (double)(number >> 11) / 9007199254740992.0 < share_of_calls;
}

// Calls the kernel directly, because the program may define clock_nanosleep() itself.
static void delay(double share_of_calls) {
  const int saved_errno = errno;
  const uint64_t number = next_number();
  if (selects(number, share_of_calls)) {
    const struct timespec duration = {0, (long)(mix(number) % longest_ns)};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &duration, NULL);
  }
  errno = saved_errno;
}

static bool has_length(const struct timespec* timeout) {
  return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

#define LATE(result, name, parameters, arguments) \
  LATE_AT(share, result, name, parameters, arguments)
#define LATE_AT(share_of_calls, result, name, parameters, arguments)            \
  result name parameters {                                                      \
    static result(*real) parameters;                                            \
    if (!real) real = (result(*) parameters)(uintptr_t)dlsym(RTLD_NEXT, #name); \
    delay(share_of_calls);                                                      \
    return real arguments;                                                      \
  }
// A call that waits unless `may_wait` is false.
#define LATE_WAIT(may_wait, name, parameters, arguments)                                          \
  int name parameters {                                                                           \
    static int(*real) parameters;                                                                 \
    if (!real) real = (int(*) parameters)(uintptr_t)dlsym(RTLD_NEXT, #name);                      \
    delay(share);                                                                                 \
    if ((may_wait) && may_interrupt() && selects(next_number(), share)) return errno = EINTR, -1; \
    return real arguments;                                                                        \
  }

LATE(ssize_t, read, (int fd, void* bytes, size_t size), (fd, bytes, size))
LATE(ssize_t, write, (int fd, const void* bytes, size_t size), (fd, bytes, size))
LATE(ssize_t, recv, (int fd, void* bytes, size_t size, int flags), (fd, bytes, size, flags))
LATE(ssize_t, send, (int fd, const void* bytes, size_t size, int flags), (fd, bytes, size, flags))
LATE(ssize_t, recvmsg, (int fd, struct msghdr* message, int flags), (fd, message, flags))
LATE(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags), (fd, message, flags))
LATE(int, epoll_ctl, (int fd, int what, int watched, struct epoll_event* event),
     (fd, what, watched, event))
LATE_WAIT(timeout != 0, epoll_wait, (int fd, struct epoll_event* events, int count, int timeout),
          (fd, events, count, timeout))
LATE_WAIT(has_length(timeout), epoll_pwait2,
          (int fd, struct epoll_event* events, int count, const struct timespec* timeout,
           const sigset_t* mask),
          (fd, events, count, timeout, mask))
LATE_WAIT(timeout != 0, poll, (struct pollfd * fds, nfds_t count, int timeout),
          (fds, count, timeout))
LATE_WAIT(has_length(timeout), ppoll,
          (struct pollfd * fds, nfds_t count, const struct timespec* timeout, const sigset_t* mask),
          (fds, count, timeout, mask))
LATE_WAIT(!timeout || timeout->tv_sec || timeout->tv_usec, select,
          (int count, fd_set* in, fd_set* out, fd_set* other, struct timeval* timeout),
          (count, in, out, other, timeout))
LATE(int, connect, (int fd, const struct sockaddr* address, socklen_t size), (fd, address, size))
LATE(int, accept4, (int fd, struct sockaddr* address, socklen_t* size, int flags),
     (fd, address, size, flags))
LATE(int, close, (int fd), (fd))
// Each turn of a loop reads the clock, so fewer of these are delayed.
LATE_AT(share / 20, int, clock_gettime, (clockid_t clock, struct timespec* time), (clock, time))
LATE(pid_t, fork, (void), ())
