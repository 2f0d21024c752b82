#include "compat/libevent/bufferevent/rate_limit.h"

#include <algorithm>

#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/bufferevent/rate_limit_group.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr std::size_t kMostAtOnce =
    16384;  // Of one system call, unless the program says otherwise.
constexpr std::size_t kMostEver =
    EV_SSIZE_MAX;  // Rates of its own are meant instead, as in libevent.

event_base* base_of(const Connection& connection) { return event_get_base(&connection.ev_read); }

void fill(Connection& connection) {
  RateLimit& limit = *connection.rate_limit;
  limit.bucket.fill(*limit.rates, tick_now(*limit.rates, base_of(connection)));
}

bool has_rates(const Connection& connection) {
  return connection.rate_limit != nullptr && connection.rate_limit->rates != nullptr;
}

void wait_for_tick(RateLimit& limit) { event_add(&limit.next_tick, &limit.rates->tick); }

// Rests or goes on as the bucket's level says.
void heed_read_level(Connection& connection) {
  if (connection.rate_limit->bucket.read > 0) {
    connection.resume_reading(kRestBandwidth);
  } else {
    connection.rest_reading(kRestBandwidth);
    wait_for_tick(*connection.rate_limit);
  }
}

void heed_write_level(Connection& connection) {
  if (connection.rate_limit->bucket.write > 0) {
    connection.resume_writing(kRestBandwidth);
  } else {
    connection.rest_writing(kRestBandwidth);
    wait_for_tick(*connection.rate_limit);
  }
}

void on_tick(evutil_socket_t, short, void* argument) {
  auto& connection = *static_cast<Connection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized || !has_rates(connection)) return;
  fill(connection);
  if ((connection.reading_rests & kRestBandwidth) != 0) heed_read_level(connection);
  if ((connection.writing_rests & kRestBandwidth) != 0) heed_write_level(connection);
}

RateLimit* limit_of(Connection& connection) {
  if (connection.rate_limit != nullptr) return connection.rate_limit;
  auto* limit = static_cast<RateLimit*>(allocate_zeroed(sizeof(RateLimit)));
  if (limit == nullptr) return nullptr;
  event_assign(&limit->next_tick, base_of(connection), -1, EV_FINALIZE, on_tick, &connection);
  return connection.rate_limit = limit;
}

void take_rates_off(Connection& connection) {
  RateLimit* limit = connection.rate_limit;
  if (limit == nullptr) return;
  limit->rates = nullptr;
  connection.resume_reading(kRestBandwidth);
  connection.resume_writing(kRestBandwidth);
  event_del(&limit->next_tick);
}

std::size_t cut(std::size_t most, ev_ssize_t level) {
  return std::min(most, static_cast<std::size_t>(std::max<ev_ssize_t>(level, 0)));
}

// `own`: what the connection moves at a time, or 0.
std::size_t most_to_move(Connection& connection, std::size_t own, ev_ssize_t TokenBucket::* level,
                         ev_ssize_t (bufferevent_rate_limit_group::*share)(Connection&)) {
  std::size_t most = own != 0 ? own : kMostAtOnce;
  RateLimit* limit = connection.rate_limit;
  if (limit == nullptr) [[likely]]
    return most;
  if (limit->rates != nullptr) {
    fill(connection);
    most = cut(kMostEver, limit->bucket.*level);
  }
  return limit->group != nullptr ? cut(most, (limit->group->*share)(connection)) : most;
}

}  // namespace

// ---- transfers

std::size_t spate::libevent::most_to_read(Connection& connection) {
  return most_to_move(connection, connection.max_single_read, &TokenBucket::read,
                      &bufferevent_rate_limit_group::read_share);
}

std::size_t spate::libevent::most_to_write(Connection& connection) {
  return most_to_move(connection, connection.max_single_write, &TokenBucket::write,
                      &bufferevent_rate_limit_group::write_share);
}

void spate::libevent::note_read(Connection& connection, std::size_t count) {
  RateLimit* limit = connection.rate_limit;
  if (limit == nullptr) [[likely]]
    return;
  if (limit->rates != nullptr) {
    limit->bucket.read -= static_cast<ev_ssize_t>(count);
    if (limit->bucket.read <= 0) heed_read_level(connection);
  }
  if (limit->group != nullptr) limit->group->note_read(count);
}

void spate::libevent::note_written(Connection& connection, std::size_t count) {
  RateLimit* limit = connection.rate_limit;
  if (limit == nullptr) [[likely]]
    return;
  if (limit->rates != nullptr) {
    limit->bucket.write -= static_cast<ev_ssize_t>(count);
    if (limit->bucket.write <= 0) heed_write_level(connection);
  }
  if (limit->group != nullptr) limit->group->note_written(count);
}

void spate::libevent::leave_rate_limit(Connection& connection) {
  RateLimit* limit = connection.rate_limit;
  if (limit == nullptr) return;
  if (limit->group != nullptr) limit->group->remove(connection);
  event_del_noblock(&limit->next_tick);
}

void spate::libevent::release_rate_limit(RateLimit* limit) {
  if (limit != nullptr) event_debug_unassign(&limit->next_tick);
  release(limit);
}

// ---- the exported functions: rates

ev_token_bucket_cfg* ev_token_bucket_cfg_new(size_t read_rate, size_t read_burst, size_t write_rate,
                                             size_t write_burst, const timeval* tick) {
  if (read_rate > read_burst || write_rate > write_burst || read_rate < 1 || write_rate < 1 ||
      read_burst > EV_RATE_LIMIT_MAX || write_burst > EV_RATE_LIMIT_MAX) {
    return nullptr;
  }
  auto* rates = static_cast<ev_token_bucket_cfg*>(allocate_zeroed(sizeof(ev_token_bucket_cfg)));
  if (rates == nullptr) return nullptr;
  rates->read = {static_cast<ev_ssize_t>(read_rate), static_cast<ev_ssize_t>(read_burst)};
  rates->write = {static_cast<ev_ssize_t>(write_rate), static_cast<ev_ssize_t>(write_burst)};
  rates->tick = tick != nullptr ? *tick : timeval{1, 0};
  const std::int64_t millis = std::int64_t{rates->tick.tv_sec} * 1000 + rates->tick.tv_usec / 1000;
  rates->tick_millis = std::max<std::int64_t>(millis, 1);
  return rates;
}

void ev_token_bucket_cfg_free(ev_token_bucket_cfg* rates) { release(rates); }

int bufferevent_set_rate_limit(bufferevent* bev, ev_token_bucket_cfg* rates) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if (rates == nullptr) {
    take_rates_off(connection);
    return 0;
  }
  RateLimit* limit = limit_of(connection);
  if (limit == nullptr) return -1;
  if (limit->rates == rates) return 0;
  const std::int64_t tick = tick_now(*rates, base_of(connection));
  if (limit->rates != nullptr) {
    limit->bucket.change(*rates, tick);
  } else {
    limit->bucket.begin(*rates, tick);
  }
  limit->rates = rates;
  event_del(&limit->next_tick);
  heed_read_level(connection);
  heed_write_level(connection);
  return 0;
}

const ev_token_bucket_cfg* bufferevent_get_token_bucket_cfg(const bufferevent* bev) {
  const Holding holding(connection_of(bev).lock);
  const RateLimit* limit = connection_of(bev).rate_limit;
  return limit != nullptr ? limit->rates : nullptr;
}

ev_ssize_t bufferevent_get_read_limit(bufferevent* bev) {
  const Keep keep(bev);
  if (!has_rates(connection_of(bev))) return EV_SSIZE_MAX;
  fill(connection_of(bev));
  return connection_of(bev).rate_limit->bucket.read;
}

ev_ssize_t bufferevent_get_write_limit(bufferevent* bev) {
  const Keep keep(bev);
  if (!has_rates(connection_of(bev))) return EV_SSIZE_MAX;
  fill(connection_of(bev));
  return connection_of(bev).rate_limit->bucket.write;
}

int bufferevent_decrement_read_limit(bufferevent* bev, ev_ssize_t count) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if (!has_rates(connection)) return -1;
  ev_ssize_t& level = connection.rate_limit->bucket.read;
  const bool had_some = level > 0;
  level -= count;
  if (had_some != (level > 0)) heed_read_level(connection);
  return 0;
}

int bufferevent_decrement_write_limit(bufferevent* bev, ev_ssize_t count) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if (!has_rates(connection)) return -1;
  ev_ssize_t& level = connection.rate_limit->bucket.write;
  const bool had_some = level > 0;
  level -= count;
  if (had_some != (level > 0)) heed_write_level(connection);
  return 0;
}

// ---- groups

int bufferevent_add_to_rate_limit_group(bufferevent* bev, bufferevent_rate_limit_group* group) {
  if (group == nullptr) return bufferevent_remove_from_rate_limit_group(bev);
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  RateLimit* limit = limit_of(connection);
  if (limit == nullptr) return -1;
  if (limit->group == group) return 0;
  if (limit->group != nullptr) limit->group->remove(connection);
  group->add(connection);
  return 0;
}

int bufferevent_remove_from_rate_limit_group(bufferevent* bev) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  RateLimit* limit = connection.rate_limit;
  if (limit != nullptr && limit->group != nullptr) limit->group->remove(connection);
  connection.resume_reading(kRestGroup);
  connection.resume_writing(kRestGroup);
  return 0;
}

// ---- of one system call

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
