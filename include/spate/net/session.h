// Session: a connection and its state in one object. Sessions: owns one Session per connection.
//
//   struct Echo : spate::Session {
//     std::size_t on_data(spate::Bytes bytes) override {
//       stream().write(bytes);
//       return bytes.size();
//     }
//   };
//
// Ownership: Sessions creates a session for a connection, and destroys it when the connection has
// ended: from the loop, soon after on_closed(). Destroying the Sessions destroys all sessions,
// closes their connections gracefully, and makes no further calls. The loop may be destroyed first;
// the Sessions may then only be destroyed.
// Threads: the loop's thread only.
// Inside a session's callbacks everything is allowed, ending the session or destroying the Sessions
// included; the latter destroys the session. A session may also be destroyed when a run() inside
// its callback returns, if abort() or end_all() ended it meanwhile.
//
// serve() (server.h) connects them to a listener.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/assert.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/hooks.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"
#include "spate/timer.h"

namespace spate {

class SessionList;
template <class T>
class Server;
template <class T>
class Sessions;

// The base class of a program's sessions. Sessions or serve() create them; they must not be final.
class Session : public StreamHandler {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the connection. Valid from on_open() on. stream().close() and stream().end() end the
  // session gracefully, abort() at once.
  Stream& stream() { return stream_; }
  // Returns the client's address: the one that a proxy sent (ServeOptions::proxy_protocol),
  // otherwise stream().peer_address(). Valid from on_open() on.
  Address client() const { return client_ == nullptr ? stream_.peer_address() : *client_; }
  // Resets the connection, and ends the session without another call.
  void abort();
  // Returns the Sessions that owns this session, to reach the others or to drain the server. T is
  // the type given to serve<T>(). Valid from on_open() to on_closed(). On Workers, it has the
  // sessions of this worker.
  template <class T>
  Sessions<T>& sessions() const;

  // Called when connected, before anything is read: the place for limits, deadlines and a greeting.
  // It may move the Stream away, for example to relay(); the session then lasts until abort().
  virtual void on_open() {}
  // Receives bytes, as StreamHandler::on_data(). The default discards them.
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  // Called after Sessions::drain(), which may precede on_open(): the session should finish. After
  // the grace the connection is reset, and on_closed() gets Error::deadline. The default sends the
  // queued bytes, and reads no more. It is also called for a session whose Stream was moved away. A
  // relay() continues until on_closed(), after which the session's members are destroyed, and a
  // Relaying among them closes its Streams.
  virtual void on_drain() { stream_.close(); }
  // Called last. Must not be private in a derived class.
  void on_closed(std::error_code) override {}

 protected:
  Session() = default;
  virtual ~Session();

 private:
  friend class SessionList;

  // Does nothing if on_open() moved the Stream away.
  void start();

  Stream stream_;
  std::unique_ptr<Address> client_;  // Set if a proxy named it.
  SessionList* list_ = nullptr;
  Session* next_ = nullptr;
  Session* previous_ = nullptr;
  bool is_over_ = false;
  bool is_in_on_closed_ = false;  // on_closed() is running.
  unsigned drain_ = 0;          // The last drain() of the list for which on_drain() was called.
};

// For serve(). A connection whose handshake is in progress, and which may become a session. It
// destroys itself before that, or the SessionList does.
class PendingSession {
 public:
  PendingSession(const PendingSession&) = delete;
  PendingSession& operator=(const PendingSession&) = delete;

 protected:
  explicit PendingSession(SessionList& list);
  virtual ~PendingSession();

 private:
  friend class SessionList;

  void leave();

  SessionList* list_;
  PendingSession* next_;
  PendingSession* previous_ = nullptr;
};

// The part of Sessions that does not depend on the type.
class SPATE_EXPORT SessionList {
 public:
  SessionList(const SessionList&) = delete;
  SessionList& operator=(const SessionList&) = delete;

  Loop& loop() const { return sweep_.loop(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Stops listening (serve() on a loop), as Listener::close(). Calls on_drain() of each session,
  // and of those opened later. Sessions that are left after `grace` are reset with Error::deadline.
  // Calls `done` once, from the loop, when none is left.
  void drain(Nanos grace, Function<void()> done = {});
  // Resets all sessions now, and calls on_closed(error) of each.
  void end_all(std::error_code error);

 protected:
  using Visitor = void (*)(Session& session, void* context);
  using OnClosed = void (*)(Session& session, std::error_code error);

  // `type` identifies the type of the sessions.
  SessionList(Loop& loop, const void* type);
  ~SessionList();

  // Adds the session and calls on_open(). `client`: its address, if it is not the peer's. False if
  // the session ended itself.
  bool enter(Session& session, Stream stream, std::unique_ptr<Address> client);
  // Ends the session; the loop destroys it.
  void retire(Session& session);
  // As retire(), after the last call, on_closed().
  void close(Session& session, OnClosed on_closed, std::error_code error);
  // Calls `visitor` for each session. It may end any of them, and destroy the list. False if it
  // destroyed the list.
  bool visit_each(Visitor visitor, void* context);

 private:
  friend class Session;
  friend class PendingSession;
  template <class T>
  friend class Server;
  class Visit;

  bool is_draining() const { return drained_by_ > Nanos{0}; }
  Nanos grace_left() const;
  void drain(Session& session);
  void drop_done();
  void sweep_soon();
  void sweep();
  void end(Session& session, std::error_code error);
  void end_strays();
  void watch_strays();
  // False if this has destroyed the list.
  bool drop_newcomers();
  void destroy(Session& session);
  void destroy_all(Session*& first);
  Session*& first_of(const Session& session) { return session.is_over_ ? ended_ : live_; }
  void move_to_ended(Session& session);
  void link(Session& session);
  void unlink(Session& session);

  const void* const type_;
  Function<void()> stop_listening_;  // Set by serve() on a loop.
  Session* live_ = nullptr;
  Session* ended_ = nullptr;
  PendingSession* pending_ = nullptr;
  Visit* visits_ = nullptr;
  std::size_t size_ = 0;
  Nanos drained_by_{0};  // In loop time; zero unless drain() was called.
  unsigned drains_ = 0;
  std::vector<Function<void()>> done_;  // The callbacks passed to drain().
  Timer sweep_;
  Timer strays_;  // Set to the end of the grace, for pending handshakes and for sessions whose
                  // Stream was moved away.
  Cleanup loop_ends_;  // Drops the functions.
};

inline PendingSession::PendingSession(SessionList& list) : list_(&list), next_(list.pending_) {
  if (next_ != nullptr) next_->previous_ = this;
  list.pending_ = this;
  if (list.is_draining()) list.watch_strays();
}

inline PendingSession::~PendingSession() {
  if (list_ != nullptr) leave();
}

inline void PendingSession::leave() {
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ == nullptr ? list_->pending_ : previous_->next_) = next_;
  if (list_->is_draining() && list_->pending_ == nullptr) list_->sweep_soon();
  list_ = nullptr;
}

inline Session::~Session() {
  if (list_ != nullptr) list_->unlink(*this);
}

inline void Session::start() {
  if (stream_.connection_ != nullptr) stream_.start(*this);
}

inline void Session::abort() {
  stream_.abort();
  if (list_ != nullptr) list_->retire(*this);
}

// True if T has an on_data() that does not override Session's: input would be discarded silently.
template <class T>
concept HidesOnData =
    requires { &T::on_data; } && !requires { static_cast<std::size_t (T::*)(Bytes)>(&T::on_data); };

// The sessions of one loop.
template <class T>
class SPATE_EXPORT Sessions : public SessionList {
 public:
  explicit Sessions(Loop& loop) : SessionList(loop, &type_tag_) {}

  // Creates a session T(args...) for a connection. Returns nullptr if memory runs out, which closes
  // the connection, or if the session ended itself at once.
  template <class... Args>
  T* open(Stream stream, Args&&... args) {
    return open_for(nullptr, std::move(stream), std::forward<Args>(args)...);
  }
  // As above, for serve(). `client`: the client's address, if it is not the peer's.
  template <class... Args>
  T* open_for(std::unique_ptr<Address> client, Stream stream, Args&&... args) {
    static_assert(std::derived_from<T, Session> && !std::is_final_v<T>,
                  "a session derives from spate::Session, publicly, and is not final");
    static_assert(!HidesOnData<T>, "on_data() takes spate::Bytes and returns std::size_t");
    auto* session = new (std::nothrow) Owned(*this, std::forward<Args>(args)...);
    if (session == nullptr) return nullptr;
    return enter(*session, std::move(stream), std::move(client)) ? session : nullptr;
  }

  // Calls visit(T&) for each session, in no order. It may end any of them; sessions opened
  // meanwhile may be skipped.
  template <class F>
  void for_each(F visit) {
    const Visitor visitor = [](Session& session, void* context) {
      (*static_cast<F*>(context))(static_cast<T&>(session));
    };
    visit_each(visitor, &visit);
  }

 private:
  class Owned final : public T {
   public:
    template <class... Args>
    explicit Owned(Sessions& sessions, Args&&... args)
        : T(std::forward<Args>(args)...), sessions_(sessions) {}

    void on_closed(std::error_code error) override {
      const OnClosed tell = [](Session& session, std::error_code why) {
        static_cast<Owned&>(session).T::on_closed(why);
      };
      sessions_.close(*this, tell, error);
    }

   private:
    Sessions& sessions_;
  };

  friend class Session;
  static inline char type_tag_;  // Its address identifies T.
};

template <class T>
Sessions<T>& Session::sessions() const {
  SPATE_ASSERT(list_ != nullptr && list_->type_ == &Sessions<T>::type_tag_,
               "sessions<T>() inside a session of a Sessions<T>, from on_open() on");
  return static_cast<Sessions<T>&>(*list_);
}

}  // namespace spate
