#pragma once

// Members of a rate-limit group that all have more to move than they may, and how much each moved.

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "libevent_cases.h"

static struct event_base* base;
// The program defines kMembersMost.
static int members;
static size_t moved[kMembersMost];
static int peers[kMembersMost];

static void on_read(struct bufferevent* bev, void* arg) {
  size_t* count = arg;
  struct evbuffer* input = bufferevent_get_input(bev);
  *count += evbuffer_get_length(input);
  evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_write(struct bufferevent* bev, void* arg) {
  static const char bytes[4096];
  (void)arg;
  if (evbuffer_get_length(bufferevent_get_output(bev)) < sizeof bytes) {
    bufferevent_write(bev, bytes, sizeof bytes);
  }
}

// Keeps the readers' sockets full, and those of the writers empty.
static void serve_peers(int writes) {
  static char bytes[4096];
  for (int i = 0; i < members; i++) {
    if (!writes) {
      while (send(peers[i], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
      }
      continue;
    }
    for (ssize_t got; (got = recv(peers[i], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
      moved[i] += (size_t)got;
    }
  }
}

static struct bufferevent_rate_limit_group* make_group(int tick_bytes, int tick_micros) {
  const struct timeval tick = {0, tick_micros};
  const size_t rate = (size_t)tick_bytes;
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(rate, rate, rate, rate, &tick);
  return bufferevent_rate_limit_group_new(base, rates);
}

static size_t moved_by_all(void) {
  size_t all = 0;
  for (int i = 0; i < members; i++) all += moved[i];
  return all;
}

static void show_fairness(void) {
  const size_t all = moved_by_all();
  int fair = 0;
  for (int i = 0; i < members; i++) {
    fair += moved[i] * members * 3 > all && moved[i] * members < all * 3;
  }
  printf("%d of %d have their share\n", fair, members);
}

// One more member, which has everything to read or to write.
static void join(struct bufferevent_rate_limit_group* group, int number, int writes) {
  int pair[2];
  open_pair(pair);
  moved[number] = 0;
  peers[number] = pair[1];
  struct bufferevent* bev = bufferevent_socket_new(base, pair[0], 0);
  bufferevent_setcb(bev, writes ? NULL : on_read, writes ? on_write : NULL, NULL, &moved[number]);
  bufferevent_add_to_rate_limit_group(bev, group);
  if (writes) on_write(bev, NULL);
  bufferevent_enable(bev, writes ? EV_WRITE : EV_READ);
}
