/* No library: the least that a correct program can do with epoll. A registration is a few stores
   and a compare. epoll_ctl is called only if the mask differs. An idle timeout is one store; a
   server would sweep these once a second. */
#include "fd.h"

#include <sys/epoll.h>

typedef struct {
  void (*function)(void *);
  void *argument;
  uint64_t deadline;
  int fd;
  uint32_t wanted, registered;
} Slot;

static Slot *slots; /* by fd */
static int poller;
static uint64_t now;

static void on_readable(void *argument) {
  const long i = (long)argument;
  if (fd_timeouts) slots[fd_socket(i)].deadline = now + fd_timeout_ns();
  fd_receive(i);
}

static void fd_open(int argc, char **argv) {
  (void)argc, (void)argv;
  poller = epoll_create1(EPOLL_CLOEXEC);
  slots = (Slot *)calloc((size_t)fd_sockets[2 * fd_pairs - 1] + 1, sizeof *slots);
}

static inline void fd_watch(long i, int fd) {
  Slot *slot = slots + fd;
  slot->function = on_readable;
  slot->argument = (void *)i;
  slot->fd = fd;
  slot->wanted = EPOLLIN;
  if (fd_timeouts) slot->deadline = now + fd_timeout_ns();
  if (slot->wanted == slot->registered) return;
  struct epoll_event event = {.events = slot->wanted, .data = {.ptr = slot}};
  if (epoll_ctl(poller, slot->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0)
    bench_die("epoll_ctl");
  slot->registered = slot->wanted;
}

static inline void fd_pass(void) {
  static struct epoll_event events[1024];
  const int n = epoll_wait(poller, events, 1024, 0);
  now = bench_now_ns();
  for (int i = 0; i < n; i++) {
    Slot *slot = (Slot *)events[i].data.ptr;
    slot->function(slot->argument);
  }
}

static void fd_version(void) { bench_version("hand-written", NULL); }
