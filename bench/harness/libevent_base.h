/* Shared by libevent's servers: the base, and a connection's bufferevent. */
#ifndef BENCH_HARNESS_LIBEVENT_BASE_H
#define BENCH_HARNESS_LIBEVENT_BASE_H

#include <event2/bufferevent.h>
#include <event2/event.h>

#include "harness/server.h"

// Without locks: each thread has its own.
inline event_base* bench_event_base() {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

// Reads as much at a time as the other contestants do. `idle`, if any, is the idle timeout.
inline bufferevent* bench_bufferevent(event_base* base, int fd, bufferevent_data_cb on_read,
                                      bufferevent_event_cb on_event, void* context,
                                      const timeval* idle = nullptr) {
  bench_no_delay(fd);
  bufferevent* connection = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(connection, on_read, nullptr, on_event, context);
  bufferevent_set_max_single_read(connection, kReadSize);
  bufferevent_set_max_single_write(connection, 16 * kReadSize);
  if (idle != nullptr) bufferevent_set_timeouts(connection, idle, nullptr);
  bufferevent_enable(connection, EV_READ | EV_WRITE);
  return connection;
}

#endif
