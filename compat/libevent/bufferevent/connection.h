// Connection: what all bufferevents have beyond the public struct, and what their kinds differ in.
//
// Semantics: event2/bufferevent.h; order, return values and what is pending when: probes.
//
// spate::Stream is not used below: programs read the public struct, its two events and its two
// evbuffers directly, and may exchange the descriptor, the base and the priority at any time.
//
// Threads: whoever calls a function below holds the lock, if there is one; the two evbuffers have
// the same. The program's callbacks are called with it held, but for BEV_OPT_UNLOCK_CALLBACKS.
//
// Lifetime: the program has one reference, and whoever calls callbacks or waits to call some has
// another. With the last one it is finalized: it goes at a time when no callback of its events
// runs.
#pragma once

#include <atomic>
#include <cstdint>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/bufferevent_api.h"
#include "compat/libevent/timeval.h"

namespace spate::libevent {

struct Connection;
struct RateLimit;
struct SocketConnection;

// Why reading or writing rests although it is enabled; several may at once.
enum Rest : std::uint8_t {
  kRestWatermark = 1,
  kRestBandwidth = 2,
  kRestGroup = 4,
  kRestLookup = 8,
  kRestFilter = 16,
};

}  // namespace spate::libevent

// What one kind of bufferevent does. Each function may be null, but for the first four.
struct bufferevent_ops {
  using Connection = spate::libevent::Connection;

  // What is enabled and does not rest begins, or ends. -1 on failure.
  int (*start)(Connection& connection, short what);
  int (*stop)(Connection& connection, short what);
  int (*timeouts_changed)(Connection& connection);
  // Something was added to the output.
  void (*output_added)(Connection& connection, const evbuffer_cb_info& change);
  // The input fell below its high watermark.
  void (*input_has_room)(Connection& connection);
  int (*flush)(Connection& connection, short what, bufferevent_flush_mode mode);
  int (*set_fd)(Connection& connection, evutil_socket_t fd);
  evutil_socket_t (*fd)(const Connection& connection);
  bufferevent* (*underlying)(const Connection& connection);
  // Itself, if it is on one that can be connected.
  spate::libevent::SocketConnection* (*socket)(Connection& connection);
  // Nobody uses it any more; then, from the loop, that it goes.
  void (*unlink)(Connection& connection);
  void (*destroy)(Connection& connection);
};

namespace spate::libevent {

// What few bufferevents need: allocated for those.
struct Extras {
  void* lock;
  event* deferred;  // Calls what is due from the loop; null until it was needed.
  RateLimit* rate_limit;
  std::size_t much_read_at_once;  // What is too much for evbuffer::most_at_once().
  std::size_t much_written_at_once;
  int error_due;     // errno for the event callback that is due.
  int lookup_error;  // Of getaddrinfo().
  short events_due;  // BEV_EVENT_*
  bool owns_lock;
  bool is_scheduled;
  bool read_is_due;
  bool write_is_due;
};

// Of all bufferevents that have none of their own. Nobody writes to it.
inline constexpr Extras kNoExtras{};

struct Connection : bufferevent {
  // Of zeroed memory. False if the options do not go together, or memory runs out; then destroy().
  bool open(event_base* base, const bufferevent_ops& ops, int connection_options);
  // Instead of a lock of its own; may be null. False when memory runs out.
  bool share_lock(void* other);
  // Only itself adds to its input, and takes from its output.
  void freeze_buffers();
  void destroy();
  // One has ended of the three that lie in this memory: itself and its two buffers.
  void end_part();

  bool is_deferred(int extra) const { return ((options | extra) & BEV_OPT_DEFER_CALLBACKS) != 0; }
  std::size_t input_size() const { return input->size(); }
  std::size_t output_size() const { return output->size(); }

  // ---- calling the program, if it has such a callback

  void trigger(short what, int extra_options);
  void call_read(int extra_options);
  void call_write(int extra_options);
  void call_event(short what, int extra_options);

  // ---- resting

  void rest_reading(Rest why);
  void resume_reading(Rest why);
  void rest_writing(Rest why);
  void resume_writing(Rest why);
  // By the high watermark.
  void check_input();

  // ---- lifetime

  void take() { ++references; }
  // True if it was the last.
  bool give_up();

  // ---- what few need

  const Extras& extras() const { return *extras_; }
  void* lock() const { return extras_->lock; }
  // To be written to. Null when memory runs out.
  Extras* make_extras();

  // The members are in an order that leaves no holes: there may be a million of them.
  int references;
  std::uint8_t reading_rests;
  std::uint8_t writing_rests;
  std::uint8_t options : 4;  // BEV_OPT_*
  bool is_finalized : 1;
  // Of sockets; here, as a byte of their own would cost eight.
  bool is_connecting : 1;
  bool is_calling_read : 1;
  bool has_answered : 1;  // The read callback has written, which is sent when it returns.

 private:
  bool make_deferred();
  template <class Note>
  void schedule(const Note& note);
  void run_due();
  template <class Call>
  void call(const Call& callback);
  void check_retrigger();
  void finalize();

  std::atomic<std::uint8_t> parts_;
  Extras* extras_;
  evbuffer input_;
  evbuffer output_;
};

inline Connection& connection_of(bufferevent* bev) { return *static_cast<Connection*>(bev); }
inline const Connection& connection_of(const bufferevent* bev) {
  return *static_cast<const Connection*>(bev);
}

// Holds the lock, and a reference.
class Keep {
 public:
  explicit Keep(bufferevent* bev) : connection_(connection_of(bev)), lock_(connection_.lock()) {
    acquire(lock_);
    connection_.take();
  }
  Keep(const Keep&) = delete;
  Keep& operator=(const Keep&) = delete;
  ~Keep() {
    connection_.give_up();
    give_back(lock_);  // Which stays until the finalizer has run, in the loop.
  }

 private:
  Connection& connection_;
  void* lock_;
};

// With its timeout, if that is set.
int add_event(event& ev, const timeval& timeout);

// For kinds that watch no descriptor: the two events are timeouts.
void assign_timeouts(Connection& connection);
// Begins them anew, if they are set; adjust_timeouts() looks itself which ones are to run.
int restart_timeouts(Connection& connection, short what);
int adjust_timeouts(Connection& connection);
int stop_timeouts(Connection& connection, short what);

}  // namespace spate::libevent
