// bufferevent_rate_limit_group: connections that share one bucket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/bufferevent/token_bucket.h"

namespace spate::libevent {

// What a connection has that is limited. Of zeroed memory.
struct RateLimit {
  const ev_token_bucket_cfg* rates;  // Its own; null if only its group's count.
  TokenBucket bucket;
  event next_tick;
  bufferevent_rate_limit_group* group;
  Connection* next_member;
  Connection** previous_member;  // What points to this one.
};

}  // namespace spate::libevent

struct bufferevent_rate_limit_group {
 public:
  using Connection = spate::libevent::Connection;

  bufferevent_rate_limit_group(event_base* base, const ev_token_bucket_cfg& rates);
  bufferevent_rate_limit_group(const bufferevent_rate_limit_group&) = delete;
  bufferevent_rate_limit_group& operator=(const bufferevent_rate_limit_group&) = delete;
  // All members leave.
  ~bufferevent_rate_limit_group();

  bool begin();
  void set_rates(const ev_token_bucket_cfg& rates);
  void set_least_share(std::size_t share);

  // With the lock of the connection, as what follows.
  void add(Connection& connection);
  void remove(Connection& connection);
  ev_ssize_t read_share(Connection& connection);
  ev_ssize_t write_share(Connection& connection);
  void note_read(std::size_t count);
  void note_written(std::size_t count);

  ev_ssize_t read_level();
  ev_ssize_t write_level();
  void take_read(ev_ssize_t count);
  void take_written(ev_ssize_t count);
  void totals(ev_uint64_t* read, ev_uint64_t* written);
  void reset_totals();

 private:
  static void on_tick(evutil_socket_t, short, void* argument);
  ev_ssize_t share_of(ev_ssize_t level) const;
  void heed_read_level();
  void heed_write_level();
  template <class Change>
  bool change_members(const Change& change);

  event_base* base_;
  ev_token_bucket_cfg rates_;
  spate::libevent::TokenBucket bucket_;
  Connection* members_ = nullptr;
  int count_ = 0;
  ev_ssize_t wanted_least_share_;
  ev_ssize_t least_share_ = 0;
  bool reading_rests_ = false;
  bool writing_rests_ = false;
  bool some_still_rest_reading_ = false;  // Were in use when the others went on.
  bool some_still_rest_writing_ = false;
  ev_uint64_t total_read_ = 0;
  ev_uint64_t total_written_ = 0;
  void* lock_;
  event next_tick_{};
};
