// The bytes that may still be read and written in this tick.
//
// Semantics: event2/bufferevent.h (ev_token_bucket_cfg_new).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat/libevent/bufferevent_api.h"

// The rate of one direction in a tick, and the most that can be saved.
struct ev_token_bucket_cfg {
  struct Rate {
    ev_ssize_t per_tick;
    ev_ssize_t most;
  };
  Rate read;
  Rate write;
  timeval tick;
  std::int64_t tick_millis;
};

namespace spate::libevent {

// Either may become negative.
struct TokenBucket {
  ev_ssize_t read = 0;
  ev_ssize_t write = 0;
  std::int64_t last_tick = 0;

  void begin(const ev_token_bucket_cfg& rates, std::int64_t tick) {
    read = rates.read.per_tick;
    write = rates.write.per_tick;
    last_tick = tick;
  }
  void change(const ev_token_bucket_cfg& rates, std::int64_t tick) {
    if (read > rates.read.most) read = rates.read.most;
    if (write > rates.write.most) write = rates.write.most;
    last_tick = tick;
  }
  void fill(const ev_token_bucket_cfg& rates, std::int64_t tick) {
    const std::int64_t ticks = tick - last_tick;
    last_tick = tick;
    if (ticks <= 0) return;  // Negative: the time of day was set back.
    fill(read, rates.read, ticks);
    fill(write, rates.write, ticks);
  }

 private:
  static void fill(ev_ssize_t& level, const ev_token_bucket_cfg::Rate& rate, std::int64_t ticks) {
    const std::size_t room = static_cast<std::size_t>(rate.most) - static_cast<std::size_t>(level);
    const bool is_filled = level >= rate.most || room / static_cast<std::size_t>(ticks) <
                                                     static_cast<std::size_t>(rate.per_tick);
    level = is_filled ? rate.most : level + ticks * rate.per_tick;
  }
};

inline std::int64_t tick_now(const ev_token_bucket_cfg& rates, event_base* base) {
  timeval now;
  event_base_gettimeofday_cached(base, &now);
  return (now.tv_sec * 1000 + now.tv_usec / 1000) / rates.tick_millis;
}

}  // namespace spate::libevent
