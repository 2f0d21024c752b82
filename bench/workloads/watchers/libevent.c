/* libevent: events in one array, as programs that embed struct event keep them; no locks. */
#include "watchers.h"

#include <event2/event.h>
#include <event2/event_struct.h>

static struct event_base *base;
static struct event *events;

static void on_event(evutil_socket_t fd, short what, void *argument) {
  (void)fd, (void)what, (void)argument;
  watchers_invoked();
}

static void watchers_open(void) {
  struct event_config *config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
  base = event_base_new_with_config(config);
  event_config_free(config);
}

static size_t watchers_object_bytes(void) { return sizeof(struct event); }

static void watchers_create(void) {
  static const struct timeval at_once = {0, 0};
  const int io = watchers_kind == WATCHERS_IO;
  const size_t count = (size_t)watchers_count;
  events = (struct event *)malloc(count * sizeof *events);
  for (size_t i = 0; i < count; i++) {
    event_assign(&events[i], base, io ? watchers_sockets[0] : -1, io ? EV_READ | EV_PERSIST : 0,
                 on_event, NULL);
    event_add(&events[i], io ? NULL : &at_once);
  }
}

static void watchers_pass(void) { event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

static void watchers_destroy(void) {
  for (long i = watchers_count; i-- > 0;) event_del(&events[i]);
  free(events);
}

static void watchers_version(void) { bench_version(event_get_version(), "libevent"); }
