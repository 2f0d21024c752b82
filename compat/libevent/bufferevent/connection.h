// Connection: the part of all bufferevents beyond the public struct, and the functions that their
// kinds implement.
//
// Semantics: event2/bufferevent.h; probed: order, return values and the pending events.
//
// spate::Stream is not used below: programs read the public struct, its two events and its two
// evbuffers directly, and may exchange the descriptor, the base and the priority at any time.
//
// Threads: the caller of a function below holds the lock, if there is one; the two evbuffers have
// the same. The program's callbacks are called with it held, unless BEV_OPT_UNLOCK_CALLBACKS is
// set.
//
// Lifetime: the program has one reference, and code that calls callbacks or has scheduled some has
// another. The last one finalizes it: it is freed at a time when no callback of its events runs.
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

// The reasons why an enabled direction is suspended; several may apply at once.
enum Rest : std::uint8_t {
  kRestWatermark = 1,
  kRestBandwidth = 2,
  kRestGroup = 4,
  kRestLookup = 8,
  kRestFilter = 16,
};

}  // namespace spate::libevent

// The functions of one kind of bufferevent. Each may be null, except the first four.
struct bufferevent_ops {
  using Connection = spate::libevent::Connection;

  // Starts or stops the enabled events that are not suspended. Returns -1 on failure.
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
  // Returns itself, if it has a socket that can be connected.
  spate::libevent::SocketConnection* (*socket)(Connection& connection);
  // unlink() is called when it is no longer used, destroy() then from the loop, when it is freed.
  void (*unlink)(Connection& connection);
  void (*destroy)(Connection& connection);
};

namespace spate::libevent {

// Data that few bufferevents need, allocated only for those.
struct Extras {
  void* lock;
  event* deferred;  // Makes the due calls from the loop; null until it is needed.
  RateLimit* rate_limit;
  std::size_t much_read_at_once;  // A value too large for evbuffer::most_at_once().
  std::size_t much_written_at_once;
  int error_due;     // errno for the event callback that is due.
  int lookup_error;  // The result of getaddrinfo().
  short events_due;  // BEV_EVENT_*
  bool owns_lock;
  bool read_is_due;
  bool write_is_due;
};

// Shared by all bufferevents without their own. Never written to.
inline constexpr Extras kNoExtras{};

struct Connection : bufferevent {
  // Initialises zeroed memory. Returns false if the options are incompatible, or memory runs out;
  // then call destroy().
  [[nodiscard]] bool open(event_base* base, const bufferevent_ops& ops, int connection_options);
  // Uses this lock instead of a new one; may be null. Returns false when memory runs out.
  [[nodiscard]] bool share_lock(void* other);
  // Only the library adds to its input, and removes from its output.
  void freeze_buffers();
  void destroy();
  // One of the three objects in this memory has ended: itself and its two buffers.
  void end_part();

  bool is_deferred(int extra) const { return ((options | extra) & BEV_OPT_DEFER_CALLBACKS) != 0; }
  std::size_t input_size() const { return input->size(); }
  std::size_t output_size() const { return output->size(); }

  // ---- calling the program's callbacks, if they are set

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

  // ---- data that few need

  const Extras& extras() const { return *extras_; }
  void* lock() const { return extras_->lock; }
  // Returns a writable copy. Null when memory runs out.
  Extras* make_extras();

  // The order of the members leaves no padding: there may be a million of them.
  int references;
  std::uint8_t reading_rests;
  std::uint8_t writing_rests;
  std::uint8_t options : 4;  // BEV_OPT_*
  bool is_finalized : 1;
  // For sockets; it is here because a separate byte would cost eight.
  bool is_connecting : 1;
  bool is_calling_read : 1;
  bool has_answered : 1;  // The read callback has written; the output is sent when it returns.

 private:
  [[nodiscard]] bool make_deferred();
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
    give_back(lock_);  // The lock stays until the finalizer has run, in the loop.
  }

 private:
  Connection& connection_;
  void* lock_;
};

// Adds the event with its timeout, if that is set.
int add_event(event& ev, const timeval& timeout);

// For kinds that watch no descriptor: the two events are timeouts.
void assign_timeouts(Connection& connection);
// Restarts the timeouts that are set; adjust_timeouts() first decides which ones should run.
int restart_timeouts(Connection& connection, short what);
[[nodiscard]] int adjust_timeouts(Connection& connection);
int stop_timeouts(Connection& connection, short what);

}  // namespace spate::libevent
