// Session: a connection and its state, in one object; and Sessions, which owns one for each
// connection.
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
// included; after the latter the session is gone. So it may be when a run() inside a callback
// returns, if abort() or end_all() has ended it by then.
//
// serve() (server.h) connects them to a listener.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/assert.h"
#include "spate/export.h"
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

  // Valid from on_open() on. stream().close() and stream().end() end the session gracefully,
  // abort() at once.
  Stream& stream() { return stream_; }
  // Resets the connection, and ends the session without another call.
  void abort();
  // The Sessions it belongs to, to reach the others or to drain the server; T is their type, that
  // of serve<T>(). From on_open() to on_closed(). On Workers, those of this worker.
  template <class T>
  Sessions<T>& sessions() const;

  // Connected, and nothing has been read: the place for limits, deadlines and a greeting.
  virtual void on_open() {}
  // The default discards what comes.
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  // Sessions::drain() was called, now or before on_open(): finish. When the grace is over, the
  // connection is reset, and on_closed() gets Error::deadline. The default sends what was written,
  // and reads no more. A session whose Stream was moved away is told the same: relay() goes on
  // until on_closed(), after which the session's members are destroyed, and a Relaying closes its
  // Streams.
  virtual void on_drain() { stream_.close(); }
  // The last call. Must not be private in a derived class.
  void on_closed(std::error_code) override {}

 protected:
  Session() = default;
  virtual ~Session();

 private:
  friend class SessionList;

  Stream stream_;
  SessionList* list_ = nullptr;
  Session* next_ = nullptr;
  Session* previous_ = nullptr;
  bool is_over_ = false;
  bool is_being_told_ = false;  // on_closed() is running.
  unsigned drain_ = 0;          // Which of the list's it has been told of.
};

// For serve(). What may become a session, as its connection is still shaking hands: destroyed by
// itself before that, or by the SessionList.
class SessionNewcomer {
 public:
  SessionNewcomer(const SessionNewcomer&) = delete;
  SessionNewcomer& operator=(const SessionNewcomer&) = delete;

 protected:
  explicit SessionNewcomer(SessionList& list);
  virtual ~SessionNewcomer();

 private:
  friend class SessionList;

  SessionList& list_;
  SessionNewcomer* next_;
  SessionNewcomer* previous_ = nullptr;
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
  // and of those opened later; what is left after `grace` is reset with Error::deadline. `done` is
  // called once, from the loop, when none is left.
  void drain(Nanos grace, std::move_only_function<void()> done = {});
  // Resets all of them now, and calls on_closed(error) of each.
  void end_all(std::error_code error);

 protected:
  using Visitor = void (*)(Session& session, void* context);
  using OnClosed = void (*)(Session& session, std::error_code error);

  // `type` stands for the type of the sessions.
  SessionList(Loop& loop, const void* type);
  ~SessionList();

  // False if the session has ended itself.
  bool enter(Session& session, Stream stream);
  // It has ended, and is destroyed by the loop.
  void retire(Session& session);
  // The same, after its last call.
  void close(Session& session, OnClosed on_closed, std::error_code error);
  // `visitor` may end any of them, and destroy the list. False if it has.
  bool visit_each(Visitor visitor, void* context);

 private:
  friend class Session;
  friend class SessionNewcomer;
  template <class T>
  friend class Server;
  class Visit;

  bool is_draining() const { return drained_by_ > Nanos{0}; }
  Nanos grace_left() const;
  void drain(Session& session);
  void sweep_soon();
  void sweep();
  void end(Session& session, std::error_code error);
  void end_strays();
  void watch_strays();
  void drop_newcomers();
  static void destroy_all(Session*& first);
  Session*& first_of(const Session& session) { return session.is_over_ ? ended_ : live_; }
  void move_to_ended(Session& session);
  void link(Session& session);
  void unlink(Session& session);

  const void* const type_;
  std::move_only_function<void()> stop_listening_;  // Set by serve() on a loop.
  Session* live_ = nullptr;
  Session* ended_ = nullptr;
  SessionNewcomer* newcomers_ = nullptr;
  Visit* visits_ = nullptr;
  std::size_t size_ = 0;
  Nanos drained_by_{0};  // In loop time; zero unless it is being drained.
  unsigned drains_ = 0;
  std::move_only_function<void()> done_;
  Timer sweep_;
  Timer strays_;  // To the end of the grace: newcomers, and those whose Stream was moved away.
};

inline SessionNewcomer::SessionNewcomer(SessionList& list) : list_(list), next_(list.newcomers_) {
  if (next_ != nullptr) next_->previous_ = this;
  list.newcomers_ = this;
  if (list.is_draining()) list.watch_strays();
}

inline SessionNewcomer::~SessionNewcomer() {
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ == nullptr ? list_.newcomers_ : previous_->next_) = next_;
  if (list_.is_draining() && list_.newcomers_ == nullptr) list_.sweep_soon();
}

inline Session::~Session() {
  if (list_ != nullptr) list_->unlink(*this);
}

inline void Session::abort() {
  stream_.abort();
  if (list_ != nullptr) list_->retire(*this);
}

// Has a function of that name that does not override: what comes would be discarded unnoticed.
template <class T>
concept HidesOnData =
    requires { &T::on_data; } && !requires { static_cast<std::size_t (T::*)(Bytes)>(&T::on_data); };

// The sessions of one loop.
template <class T>
class SPATE_EXPORT Sessions : public SessionList {
 public:
  explicit Sessions(Loop& loop) : SessionList(loop, &type_tag_) {}

  // Creates a session T(args...) for a connection. nullptr if memory runs out, when the connection
  // is closed, or if the session has ended itself at once.
  template <class... Args>
  T* open(Stream stream, Args&&... args) {
    static_assert(std::derived_from<T, Session> && !std::is_final_v<T>,
                  "a session derives from spate::Session, publicly, and is not final");
    static_assert(!HidesOnData<T>, "on_data() takes spate::Bytes and returns std::size_t");
    auto* session = new (std::nothrow) Owned(*this, std::forward<Args>(args)...);
    if (session == nullptr) return nullptr;
    return enter(*session, std::move(stream)) ? session : nullptr;
  }

  // Calls visit(T&) for each, in no order. It may end any of them; those opened meanwhile may be
  // skipped.
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
  static inline char type_tag_;  // Its address stands for T.
};

template <class T>
Sessions<T>& Session::sessions() const {
  SPATE_ASSERT(list_ != nullptr && list_->type_ == &Sessions<T>::type_tag_,
               "sessions<T>() inside a session of a Sessions<T>, from on_open() on");
  return static_cast<Sessions<T>&>(*list_);
}

}  // namespace spate
