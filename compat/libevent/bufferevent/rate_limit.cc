#include "compat/libevent/bufferevent/rate_limit.h"

#include <algorithm>

#include "compat/libevent/bufferevent/connection.h"

using namespace spate::libevent;

namespace {

constexpr std::size_t kMostAtOnce =
    16384;  // Of one system call, unless the program says otherwise.

}  // namespace

std::size_t spate::libevent::most_to_read(Connection& connection) {
  return connection.max_single_read != 0 ? connection.max_single_read : kMostAtOnce;
}

std::size_t spate::libevent::most_to_write(Connection& connection) {
  return connection.max_single_write != 0 ? connection.max_single_write : kMostAtOnce;
}

void spate::libevent::note_read(Connection&, std::size_t) {}
void spate::libevent::note_written(Connection&, std::size_t) {}
void spate::libevent::leave_rate_limit(Connection&) {}

int bufferevent_set_max_single_read(bufferevent* bev, size_t size) {
  const Keep keep(bev);
  connection_of(bev).max_single_read = size > EV_SSIZE_MAX ? 0 : size;
  return 0;
}

int bufferevent_set_max_single_write(bufferevent* bev, size_t size) {
  const Keep keep(bev);
  connection_of(bev).max_single_write = size > EV_SSIZE_MAX ? 0 : size;
  return 0;
}

ev_ssize_t bufferevent_get_max_single_read(bufferevent* bev) {
  const Keep keep(bev);
  const std::size_t size = connection_of(bev).max_single_read;
  return static_cast<ev_ssize_t>(size != 0 ? size : kMostAtOnce);
}

ev_ssize_t bufferevent_get_max_single_write(bufferevent* bev) {
  const Keep keep(bev);
  const std::size_t size = connection_of(bev).max_single_write;
  return static_cast<ev_ssize_t>(size != 0 ? size : kMostAtOnce);
}

ev_ssize_t bufferevent_get_max_to_read(bufferevent* bev) {
  const Keep keep(bev);
  return static_cast<ev_ssize_t>(most_to_read(connection_of(bev)));
}

ev_ssize_t bufferevent_get_max_to_write(bufferevent* bev) {
  const Keep keep(bev);
  return static_cast<ev_ssize_t>(most_to_write(connection_of(bev)));
}
