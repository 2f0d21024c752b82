/* libevent, and through its header of the same name libev's emulation of it (libev_libevent): the
   same lines, as in the published runs. The base is used from one thread, so no locks are set up.
   With --changelist 1 (libevent_changelist) epoll changes are gathered until the next wait, an
   option that libevent warns of where fds are duplicated, and the faster one here. */
#include "fd.h"

#include <event.h>

static struct event_base *base;
static struct event *events;

static struct timeval timeout(void) {
  const uint64_t ns = fd_timeout_ns();
  return (struct timeval){(time_t)(ns / 1000000000u), (suseconds_t)(ns % 1000000000u / 1000u)};
}

static void on_event(int fd, short what, void *argument) {
  const long i = (long)argument;
  (void)fd;
  if (what & EV_TIMEOUT) {
    fd_expired++;
    return;
  }
  if (fd_timeouts) {
#ifdef LIBEV_EMULATION
    event_del(&events[i]); /* as the published runs do: del and add */
#endif /* libevent itself moves the timeout of a pending event in one event_add, which is cheaper */
    struct timeval after = timeout();
    event_add(&events[i], &after);
  }
  fd_receive(i);
}

static void open_base(int argc, char **argv) {
#ifdef LIBEV_EMULATION
  (void)argc, (void)argv;
  base = event_base_new();
#else
  struct event_config *config = event_config_new();
  int flags = EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV;
  if (bench_number(argc, argv, "changelist", 0)) flags |= EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST;
  event_config_set_flag(config, flags);
  base = event_base_new_with_config(config);
  event_config_free(config);
#endif
}

static void fd_open(int argc, char **argv) {
  open_base(argc, argv);
  events = (struct event *)calloc((size_t)fd_pairs, sizeof *events);
  for (long i = 0; i < fd_pairs; i++) {
    event_set(&events[i], fd_socket(i), EV_READ | EV_PERSIST, on_event, (void *)i);
    event_base_set(base, &events[i]);
  }
}

static inline void fd_watch(long i, int fd) {
  event_del(&events[i]);
#ifdef LIBEV_EMULATION
  event_set(&events[i], fd, EV_READ | EV_PERSIST, on_event, (void *)i);
  event_base_set(base, &events[i]);
#else
  event_assign(&events[i], base, fd, EV_READ | EV_PERSIST, on_event, (void *)i);
#endif
  if (fd_timeouts) {
    struct timeval after = timeout();
    event_add(&events[i], &after);
  } else {
    event_add(&events[i], NULL);
  }
}

static inline void fd_pass(void) { event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

static void fd_version(void) {
#ifdef LIBEV_EMULATION
  bench_version(event_get_version(), "libev.so");
#else
  bench_version(event_get_version(), "libevent");
#endif
}
