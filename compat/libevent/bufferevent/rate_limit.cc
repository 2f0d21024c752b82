#include "compat/libevent/bufferevent/rate_limit.h"

#include <algorithm>
#include <cstdint>

#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/bufferevent/rate_limit_group.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr std::size_t kMostAtOnce =
    16384;                                 // For one system call, by default.
constexpr std::size_t kMuch = UINT32_MAX;  // The largest value of evbuffer::most_at_once().
constexpr std::size_t kMostEver =
    EV_SSIZE_MAX;  // This value selects the bufferevent's own rate, as in libevent.

event_base* base_of(const Connection& connection) { return event_get_base(&connection.ev_read); }

void fill(Connection& connection) {
  RateLimit& limit = *connection.extras().rate_limit;
  limit.bucket.fill(*limit.rates, tick_now(*limit.rates, base_of(connection)));
}

bool has_rates(const Connection& connection) {
  return connection.extras().rate_limit != nullptr &&
         connection.extras().rate_limit->rates != nullptr;
}

void wait_for_tick(RateLimit& limit) { event_add(&limit.next_tick, &limit.rates->tick); }

// Suspends or resumes, by the bucket's level.
void heed_level(Connection& connection, const Flow& flow) {
  if (connection.extras().rate_limit->bucket.*flow.level > 0) {
    (connection.*flow.resume)(kRestBandwidth);
  } else {
    (connection.*flow.rest)(kRestBandwidth);
    wait_for_tick(*connection.extras().rate_limit);
  }
}

void heed_filled(Connection& connection, const Flow& flow) {
  if ((connection.*flow.rests & kRestBandwidth) != 0) heed_level(connection, flow);
}

void on_tick(evutil_socket_t, short, void* argument) {
  auto& connection = *static_cast<Connection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized || !has_rates(connection)) return;
  fill(connection);
  heed_filled(connection, kReading);
  heed_filled(connection, kWriting);
}

RateLimit* limit_of(Connection& connection) {
  Extras* extras = connection.make_extras();
  if (extras == nullptr || extras->rate_limit != nullptr) {
    return extras != nullptr ? extras->rate_limit : nullptr;
  }
  auto* limit = static_cast<RateLimit*>(allocate_zeroed(sizeof(RateLimit)));
  if (limit == nullptr) return nullptr;
  event_assign(&limit->next_tick, base_of(connection), -1, EV_FINALIZE, on_tick, &connection);
  return extras->rate_limit = limit;
}

void take_rates_off(Connection& connection) {
  RateLimit* limit = connection.extras().rate_limit;
  if (limit == nullptr) return;
  limit->rates = nullptr;
  connection.resume_reading(kRestBandwidth);
  connection.resume_writing(kRestBandwidth);
  event_del(&limit->next_tick);
}

std::size_t cut(std::size_t most, ev_ssize_t level) {
  return std::min(most, static_cast<std::size_t>(std::max<ev_ssize_t>(level, 0)));
}

std::size_t most_at_once(const Connection& connection, const Flow& flow) {
  const std::size_t most = (connection.*flow.buffer)->most_at_once();
  if (most == 0) return kMostAtOnce;
  return most == kMuch ? connection.extras().*flow.much_at_once : most;
}

std::size_t most_to_move(Connection& connection, const Flow& flow) {
  std::size_t most = most_at_once(connection, flow);
  RateLimit* limit = connection.extras().rate_limit;
  if (limit == nullptr) [[likely]]
    return most;
  if (limit->rates != nullptr) {
    fill(connection);
    most = cut(kMostEver, limit->bucket.*flow.level);
  }
  return limit->group != nullptr ? cut(most, limit->group->share(connection, flow)) : most;
}

void note_moved(Connection& connection, const Flow& flow, std::size_t count) {
  RateLimit* limit = connection.extras().rate_limit;
  if (limit == nullptr) [[likely]]
    return;
  if (limit->rates != nullptr) {
    limit->bucket.*flow.level -= static_cast<ev_ssize_t>(count);
    if (limit->bucket.*flow.level <= 0) heed_level(connection, flow);
  }
  if (limit->group != nullptr) limit->group->note_moved(connection, flow, count);
}

ev_ssize_t level_of(bufferevent* bev, const Flow& flow) {
  const Keep keep(bev);
  if (!has_rates(connection_of(bev))) return EV_SSIZE_MAX;
  fill(connection_of(bev));
  return connection_of(bev).extras().rate_limit->bucket.*flow.level;
}

int decrement(bufferevent* bev, const Flow& flow, ev_ssize_t count) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if (!has_rates(connection)) return -1;
  ev_ssize_t& level = connection.extras().rate_limit->bucket.*flow.level;
  const bool had_some = level > 0;
  level -= count;
  if (had_some != (level > 0)) heed_level(connection, flow);
  return 0;
}

int set_most_at_once(bufferevent* bev, const Flow& flow, std::size_t size) {
  const Keep keep(bev);
  if (size > EV_SSIZE_MAX) size = 0;
  if (size >= kMuch) {
    Extras* extras = connection_of(bev).make_extras();
    if (extras == nullptr) return -1;
    extras->*flow.much_at_once = size;
  }
  (bev->*flow.buffer)->set_most_at_once(static_cast<std::uint32_t>(std::min(size, kMuch)));
  return 0;
}

ev_ssize_t get_most_at_once(bufferevent* bev, const Flow& flow) {
  const Keep keep(bev);
  return static_cast<ev_ssize_t>(most_at_once(connection_of(bev), flow));
}

}  // namespace

// ---- transfers

std::size_t spate::libevent::most_to_read(Connection& connection) {
  return most_to_move(connection, kReading);
}
std::size_t spate::libevent::most_to_write(Connection& connection) {
  return most_to_move(connection, kWriting);
}
void spate::libevent::note_read(Connection& connection, std::size_t count) {
  note_moved(connection, kReading, count);
}
void spate::libevent::note_written(Connection& connection, std::size_t count) {
  note_moved(connection, kWriting, count);
}

void spate::libevent::leave_rate_limit(Connection& connection) {
  RateLimit* limit = connection.extras().rate_limit;
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
  heed_level(connection, kReading);
  heed_level(connection, kWriting);
  return 0;
}

const ev_token_bucket_cfg* bufferevent_get_token_bucket_cfg(const bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  const RateLimit* limit = connection_of(bev).extras().rate_limit;
  return limit != nullptr ? limit->rates : nullptr;
}

ev_ssize_t bufferevent_get_read_limit(bufferevent* bev) { return level_of(bev, kReading); }
ev_ssize_t bufferevent_get_write_limit(bufferevent* bev) { return level_of(bev, kWriting); }

int bufferevent_decrement_read_limit(bufferevent* bev, ev_ssize_t count) {
  return decrement(bev, kReading, count);
}
int bufferevent_decrement_write_limit(bufferevent* bev, ev_ssize_t count) {
  return decrement(bev, kWriting, count);
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
  RateLimit* limit = connection.extras().rate_limit;
  if (limit != nullptr && limit->group != nullptr) limit->group->remove(connection);
  connection.resume_reading(kRestGroup);
  connection.resume_writing(kRestGroup);
  return 0;
}

// ---- of one system call

int bufferevent_set_max_single_read(bufferevent* bev, size_t size) {
  return set_most_at_once(bev, kReading, size);
}
int bufferevent_set_max_single_write(bufferevent* bev, size_t size) {
  return set_most_at_once(bev, kWriting, size);
}
ev_ssize_t bufferevent_get_max_single_read(bufferevent* bev) {
  return get_most_at_once(bev, kReading);
}
ev_ssize_t bufferevent_get_max_single_write(bufferevent* bev) {
  return get_most_at_once(bev, kWriting);
}

ev_ssize_t bufferevent_get_max_to_read(bufferevent* bev) {
  const Keep keep(bev);
  return static_cast<ev_ssize_t>(most_to_read(connection_of(bev)));
}

ev_ssize_t bufferevent_get_max_to_write(bufferevent* bev) {
  const Keep keep(bev);
  return static_cast<ev_ssize_t>(most_to_write(connection_of(bev)));
}
