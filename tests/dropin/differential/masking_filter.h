// Bufferevents over a socket whose filters change each byte. Two filters change it back.
#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum { kFiltersMost = 2 };

static const unsigned char mask = 0x55;

static enum bufferevent_filter_result change(struct evbuffer* from, struct evbuffer* to,
                                             ev_ssize_t limit, enum bufferevent_flush_mode mode,
                                             void* arg) {
  (void)mode;
  (void)arg;
  unsigned char bytes[64];
  size_t most = limit >= 0 && (size_t)limit < sizeof bytes ? (size_t)limit : sizeof bytes;
  const int size = evbuffer_remove(from, bytes, most);
  if (size <= 0) return BEV_NEED_MORE;
  for (int i = 0; i < size; i++) bytes[i] ^= mask;
  evbuffer_add(to, bytes, (size_t)size);
  return BEV_OK;
}

static struct bufferevent* make_masked(struct event_base* of, int filters) {
  struct bufferevent* bev = bufferevent_socket_new(of, -1, BEV_OPT_CLOSE_ON_FREE);
  for (int i = 0; i < filters; i++) {
    bev = bufferevent_filter_new(bev, change, change, BEV_OPT_CLOSE_ON_FREE, NULL, NULL);
  }
  return bev;
}
