// libev's emulation of libevent 1.4: the 24 functions that start with event_. ev(3): "LIBEVENT
// EMULATION".
//
// Not compared: the time that event_pending() returns, which is wrong in the original.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "libev_emulation.h"
#include "libev_virtual.h"

enum { kAll = EV_READ | EV_WRITE | EV_TIMER | EV_SIGNAL };

static Event events[6];
static int pair[2];

static struct timeval* milliseconds(int count) {
  static struct timeval value;
  value = (struct timeval){.tv_sec = count / 1000, .tv_usec = count % 1000 * 1000};
  return &value;
}

static void print_event(const Event* event) {
  const int number = (int)(event - events);
  printf("event %d result %x flags %x pending %x fd %s priority %d\n", number,
         (unsigned)event->result, (unsigned)event->flags,
         (unsigned)event_pending(&events[number], kAll, NULL), event->fd == pair[0] ? "pair" : "-",
         event->priority);
}

static void on_event(int fd, short what, void* argument) {
  printf("callback fd %s events %x: ", fd == pair[0] ? "pair" : "-", (unsigned)what);
  print_event(argument);
}

static void on_drain(int fd, short what, void* argument) {
  on_event(fd, what, argument);
  char bytes[64];
  while (read(fd, bytes, sizeof bytes) > 0) {
  }
}

static void set(int number, int fd, int what) {
  event_set(&events[number], fd, (short)what, on_event, &events[number]);
}

static void add(int number, int timeout) {
  const int result = event_add(&events[number], timeout < 0 ? NULL : milliseconds(timeout));
  printf("add %d: ", result);
  print_event(&events[number]);
}

static void del(int number) {
  const int result = event_del(&events[number]);
  printf("del %d: ", result);
  print_event(&events[number]);
}

static void start(void) {
  loop = event_init();
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) {
    abort();
  }
  pair[0] = fcntl(fds[0], F_DUPFD, 100);
  pair[1] = fds[1];
}

static void put(void) {
  if (write(pair[1], "x", 1) != 1) {
    abort();
  }
}

static void once_round(int after) {
  advance(after);
  printf("loop: %d\n", event_loop(kNoWaitFlag));
}

static void names(void) {
  printf("%s %s\n", event_get_version(), event_get_method());
  void* const base = event_base_new();
  printf("%s\n", event_base_get_method(base));
  event_base_free(base);
}

static void reading(void) {
  start();
  set(0, pair[0], EV_READ);
  print_event(&events[0]);
  printf("callback %d\n", event_get_callback(&events[0]) == on_event);
  add(0, -1);
  once_round(1);
  put();
  once_round(1);
  once_round(1);
  add(0, -1);
  add(0, -1);
  once_round(1);
  add(0, -1);
  del(0);
  once_round(1);
  del(0);
}

static void persisting(void) {
  start();
  set(0, pair[0], EV_READ | kPersist);
  set(1, pair[0], EV_WRITE | kPersist);
  set(2, pair[0], EV_READ | EV_WRITE | kPersist);
  add(0, -1);
  add(1, -1);
  add(2, -1);
  once_round(1);
  put();
  once_round(1);
  once_round(1);
  del(1);
  once_round(1);
}

static void timeouts(void) {
  start();
  set(0, -1, 0);
  set(1, -1, kPersist);
  set(2, -1, EV_TIMER);
  add(0, 5);
  add(1, 7);
  add(2, 9);
  for (int i = 0; i < 5; i++) {
    once_round(4);
  }
  add(0, 0);
  add(1, 30);
  add(1, 3);
  once_round(4);
  add(0, 5);
  add(0, -1);
  once_round(10);
}

static void reading_with_timeout(void) {
  start();
  event_set(&events[0], pair[0], EV_READ, on_drain, &events[0]);
  event_set(&events[1], pair[0], EV_READ | kPersist, on_drain, &events[1]);
  add(0, 5);
  once_round(3);
  put();
  once_round(1);
  once_round(10);
  add(0, 5);
  once_round(6);
  add(1, 5);
  put();
  once_round(3);
  once_round(3);
  once_round(3);
}

static void both_at_once(void) {
  start();
  event_set(&events[0], pair[0], EV_READ, on_drain, &events[0]);
  add(0, 5);
  once_round(1);
  put();
  once_round(10);
  once_round(10);
}

static void signals(void) {
  start();
  set(0, SIGUSR1, EV_SIGNAL | kPersist);
  set(1, SIGUSR2, EV_SIGNAL);
  add(0, -1);
  add(1, -1);
  raise(SIGUSR1);
  raise(SIGUSR1);
  raise(SIGUSR2);
  once_round(1);
  raise(SIGUSR1);
  once_round(1);
  del(0);
  add(1, 5);
  once_round(6);
  once_round(6);
}

static void activated(void) {
  start();
  set(0, pair[0], EV_READ);
  set(1, pair[0], EV_READ | kPersist);
  set(2, -1, 0);
  event_active(&events[0], EV_READ, 1);
  event_active(&events[1], EV_WRITE, 3);
  event_active(&events[2], EV_TIMER, 1);
  for (int i = 0; i < 3; i++) {
    print_event(&events[i]);
  }
  once_round(1);
  add(0, 50);
  event_active(&events[0], EV_READ, 1);
  event_active(&events[0], EV_TIMER, 1);
  once_round(1);
  add(1, -1);
  event_active(&events[1], EV_READ | EV_TIMER, 1);
  once_round(1);
  event_active(&events[1], EV_READ, 1);
  del(1);
  once_round(1);
}

static void on_once(int fd, short what, void* argument) {
  printf("once %s fd %s events %x\n", (const char*)argument, fd == pair[0] ? "pair" : "-",
         (unsigned)what);
}

static void once(void) {
  start();
  printf("%d\n", event_once(pair[0], EV_READ, on_once, "read", NULL));
  printf("%d\n", event_once(pair[0], EV_WRITE, on_once, "write", NULL));
  printf("%d\n", event_once(-1, EV_TIMER, on_once, "timer", milliseconds(5)));
  printf("%d\n", event_once(pair[0], EV_READ, on_once, "read or timer", milliseconds(7)));
  once_round(1);
  once_round(10);
  put();
  once_round(1);
  once_round(1);
}

static void leaving(void) {
  start();
  set(0, pair[0], EV_WRITE);
  set(1, -1, 0);
  printf("empty: %d\n", event_dispatch());
  add(1, 50);
  printf("loopexit %d\n", event_loopexit(milliseconds(10)));
  const int result = event_dispatch();
  printf("dispatch: %d now %.0f\n", result, floor(now_in_milliseconds()));
  add(0, -1);
  printf("loopexit %d\n", event_loopexit(NULL));
  printf("dispatch: %d\n", event_dispatch());
  add(0, -1);
  printf("loop once: %d\n", event_loop(kOnceFlag));
  printf("dispatch: %d\n", event_dispatch());
}

static void bases(void) {
  void* const first = event_init();
  printf("the default loop: %d\n", first == ev_default_loop(0));
  set(0, -1, 0);
  void* const second = event_init();
  printf("another: %d\n", second != first);
  set(1, -1, 0);
  void* const third = event_base_new();
  set(2, -1, 0);
  printf("set %d\n", event_base_set(third, &events[2]));
  printf("bases %d %d %d\n", events[0].base == first, events[1].base == second,
         events[2].base == third);
  for (int i = 0; i < 3; i++) {
    add(i, 3 + i);
  }
  advance(20);
  printf("second: %d\n", event_loop(kNoWaitFlag));
  printf("first: %d\n", event_base_loop(first, kNoWaitFlag));
  printf("third: %d\n", event_base_dispatch(third));
  printf("once %d\n", event_base_once(third, -1, EV_TIMER, on_once, "timer", milliseconds(4)));
  printf("loopexit %d\n", event_base_loopexit(third, milliseconds(9)));
  printf("third: %d\n", event_base_dispatch(third));
  event_base_free(third);
  event_base_free(second);
  event_base_free(first);
}

static void priorities(void) {
  start();
  printf("%d %d\n", event_priority_init(3), event_base_priority_init(loop, 5));
  for (int i = 0; i < 4; i++) {
    set(i, pair[0], EV_WRITE);
    printf("%d\n", event_priority_set(&events[i], i % 3 - 1));
    add(i, -1);
  }
  once_round(1);
  set(0, pair[0], EV_WRITE);
  printf("far: %d\n", event_priority_set(&events[0], 100));
  print_event(&events[0]);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"names", names},
      {"reading", reading},
      {"persisting", persisting},
      {"timeouts", timeouts},
      {"reading with timeout", reading_with_timeout},
      {"both at once", both_at_once},
      {"signals", signals},
      {"activated", activated},
      {"once", once},
      {"leaving", leaving},
      {"bases", bases},
      {"priorities", priorities},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
