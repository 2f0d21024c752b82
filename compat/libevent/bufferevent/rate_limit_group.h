// bufferevent_rate_limit_group: connections that share one bucket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/bufferevent/token_bucket.h"

namespace spate::libevent {

// Reading or writing: the members of a connection for each.
struct Flow {
  ev_ssize_t TokenBucket::* level;
  evbuffer* bufferevent::* buffer;
  std::size_t Extras::* much_at_once;
  std::uint8_t Connection::* rests;
  void (Connection::*rest)(Rest why);
  void (Connection::*resume)(Rest why);
};
inline constexpr Flow kReading = {&TokenBucket::read,         &bufferevent::input,
                                  &Extras::much_read_at_once, &Connection::reading_rests,
                                  &Connection::rest_reading,  &Connection::resume_reading};
inline constexpr Flow kWriting = {&TokenBucket::write,           &bufferevent::output,
                                  &Extras::much_written_at_once, &Connection::writing_rests,
                                  &Connection::rest_writing,     &Connection::resume_writing};

// The rate limit of one connection. Lies in zeroed memory.
struct RateLimit {
  const ev_token_bucket_cfg* rates;  // Its own; null if only the group's apply.
  TokenBucket bucket;
  event next_tick;
  bufferevent_rate_limit_group* group;
  Connection* next_member;
  Connection** previous_member;  // The pointer to this one.
};

}  // namespace spate::libevent

struct bufferevent_rate_limit_group {
 public:
  using Connection = spate::libevent::Connection;
  using Flow = spate::libevent::Flow;

  bufferevent_rate_limit_group(event_base* base, const ev_token_bucket_cfg& rates);
  bufferevent_rate_limit_group(const bufferevent_rate_limit_group&) = delete;
  bufferevent_rate_limit_group& operator=(const bufferevent_rate_limit_group&) = delete;
  // All members leave.
  ~bufferevent_rate_limit_group();

  [[nodiscard]] bool begin();
  void set_rates(const ev_token_bucket_cfg& rates);
  void set_least_share(ev_ssize_t share);

  // With the connection's lock, as the functions below.
  void add(Connection& connection);
  void remove(Connection& connection);
  // Returns how much a member may transfer now; if that is 0, suspends it.
  ev_ssize_t share(Connection& connection, const Flow& flow);
  void note_moved(Connection& connection, const Flow& flow, std::size_t count);

  ev_ssize_t level(const Flow& flow);
  void take(const Flow& flow, ev_ssize_t count);
  void totals(ev_uint64_t* read, ev_uint64_t* written);
  void reset_totals();

 private:
  struct State {
    ev_uint64_t total = 0;
    Connection* first = nullptr;  // The next iteration begins here; null: at the start of the list.
    bool rests = false;
    bool some_still_rest = false;  // They were in use when the others were resumed.
  };

  static void on_tick(evutil_socket_t, short, void* argument);
  State& state_of(const Flow& flow) {
    return &flow == &spate::libevent::kReading ? reading_ : writing_;
  }
  ev_ssize_t share_of(ev_ssize_t level) const;
  void heed_level(const Flow& flow);
  void heed_filled(const Flow& flow);
  bool change_members(const State& state, void (Connection::*change)(spate::libevent::Rest why));

  event_base* base_;
  ev_token_bucket_cfg rates_;
  spate::libevent::TokenBucket bucket_;
  Connection* members_ = nullptr;
  int count_ = 0;
  ev_ssize_t wanted_least_share_;
  ev_ssize_t least_share_ = 0;
  State reading_;
  State writing_;
  void* lock_;
  event next_tick_{};
};
