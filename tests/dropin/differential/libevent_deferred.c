// Random scripts over callbacks that are deferred: bufferevents that are triggered, many in a turn,
// between events that a program activates, descriptors that are ready and timeouts. Each line is a
// call, so that the output is the order in which they come.
//
// differential: --seeds 1:2000
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "libevent_cases.h"
#include "virtual_steps.h"

enum { kBevs = 60, kUsers = 6, kFds = 4, kFuel = 200, kLoops = 8, kBurst = 45 };

typedef struct Deferring {
  int number;
  struct bufferevent* bev;
} Deferring;

static struct event_base* base;
static Deferring deferring[kBevs];
static struct event* users[kUsers];
static struct event* readers[kFds];
static int pairs[kFds][2];
static int fuel;
static int timeouts;  // No two are equal.

static void stop(void) { event_base_loopbreak(base); }

static void trigger_one(void) {
  Deferring* one = &deferring[random_below(kBevs)];
  if (!one->bev) return;
  const short what = random_chance(50) ? EV_READ : EV_WRITE;
  printf("    trigger %d %#x\n", one->number, what);
  bufferevent_trigger(one->bev, what, BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

static void free_one(void) {
  Deferring* one = &deferring[random_below(kBevs)];
  if (!one->bev) return;
  printf("  free %d\n", one->number);
  bufferevent_free(one->bev);
  one->bev = NULL;
}

static void act(void) {
  if (fuel <= 0) return;
  fuel--;
  const int choice = random_below(100);
  if (choice < 60) {
    for (int i = random_below(random_chance(30) ? kBurst : 3); i > 0; i--) trigger_one();
  } else if (choice < 75) {
    event_active(users[random_below(kUsers)], EV_WRITE, 1);
  } else if (choice < 85) {
    put(pairs[random_below(kFds)][1], "x");
  } else if (choice < 88) {
    const struct timeval soon = {0, ++timeouts};
    event_add(users[random_below(kUsers)], &soon);
    virtual_advance(kMillisecond);
  } else if (choice < 91) {
    event_del(users[random_below(kUsers)]);
  } else if (choice < 93) {
    event_base_loopcontinue(base);
  } else if (choice < 95) {
    event_base_loopexit(base, NULL);
  } else if (choice < 97) {
    free_one();
  } else {
    printf("  active: %d, added %d\n", event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE),
           event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  }
}

static void say(const char* what, int number) {
  printf("  %s %d\n", what, number);
  act();
}

static void on_read(struct bufferevent* bev, void* arg) {
  (void)bev;
  say("read", ((Deferring*)arg)->number);
}

static void on_write(struct bufferevent* bev, void* arg) {
  (void)bev;
  say("write", ((Deferring*)arg)->number);
}

static void on_user(evutil_socket_t fd, short what, void* arg) {
  (void)fd;
  printf("  what %#x\n", what);
  say("user", (int)((struct event**)arg - users));
}

static void on_fd(evutil_socket_t fd, short what, void* arg) {
  char byte;
  (void)what;
  if (read(fd, &byte, 1) < 1) printf("  nothing to read\n");
  say("fd", (int)((int(*)[2])arg - pairs));
}

static void set_up(int priorities) {
  base = event_base_new();
  printf("%d priorities\n", priorities);
  if (priorities > 1) event_base_priority_init(base, priorities);
  for (int i = 0; i < kBevs; i++) {
    deferring[i] = (Deferring){i, bufferevent_socket_new(base, -1, 0)};
    bufferevent_setcb(deferring[i].bev, on_read, on_write, NULL, &deferring[i]);
    bufferevent_priority_set(deferring[i].bev, random_below(priorities));
  }
  for (int i = 0; i < kUsers; i++) {
    users[i] = event_new(base, -1, random_chance(50) ? EV_PERSIST : 0, on_user, &users[i]);
    event_priority_set(users[i], random_below(priorities));
  }
  for (int i = 0; i < kFds; i++) {
    open_pair(pairs[i]);
    readers[i] = event_new(base, pairs[i][0], EV_READ | EV_PERSIST, on_fd, pairs[i]);
    event_priority_set(readers[i], random_below(priorities));
    event_add(readers[i], NULL);
  }
}

static void tear_down(void) {
  for (int i = 0; i < kBevs; i++) {
    if (deferring[i].bev) bufferevent_free(deferring[i].bev);
  }
  for (int i = 0; i < kUsers; i++) event_free(users[i]);
  for (int i = 0; i < kFds; i++) {
    event_free(readers[i]);
    close_pair(pairs[i]);
  }
  event_base_free(base);
}

static void run_script(void) {
  use_steps(stop);
  event_set_log_callback(on_log);
  set_up(1 + random_below(3));
  for (int i = 0; i < kLoops; i++) {
    fuel = kFuel;
    for (int acts = 1 + random_below(4); acts > 0; acts--) act();
    const int flags = random_chance(50) ? EVLOOP_NONBLOCK : EVLOOP_ONCE | EVLOOP_NONBLOCK;
    printf("loop %#x\n", flags);
    printf("looped: %d\n", event_base_loop(base, flags));
  }
  tear_down();
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
