// Session: a connection and what a program knows of it, in one object; and Sessions, which owns as
// many of them as there are connections.
//
//   struct Echo : spate::Session {
//     std::size_t on_data(spate::Bytes bytes) override {
//       stream().write(bytes);
//       return bytes.size();
//     }
//   };
//
// Ownership: Sessions makes a session when it is given a connection, and destroys it when the
// connection has ended: in the loop's own time, soon after on_closed(). Destroying the Sessions
// destroys all sessions, whose connections are closed in good order, and nobody is called any more.
// The loop may be destroyed first; then destroying them is all that is left to do.
// Threads: the loop's thread only.
// Inside a session's callbacks everything is allowed, ending or destroying the Sessions included;
// whoever does that must not touch the session any more. A session that ends itself and then runs
// the loop may be gone when that returns.
//
// serve() (server.h) has them come from a listener.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/export.h"
#include "spate/net/stream.h"
#include "spate/time.h"
#include "spate/timer.h"

namespace spate {

class SessionList;

// What a program's sessions derive from. They are made by Sessions or serve(), and must not be
// final.
class Session : public StreamHandler {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Belongs to the session from on_open() on. stream().close() and stream().end() end the session,
  // too, in good order; for the hard way there is abort().
  Stream& stream() { return stream_; }
  // Resets the connection, and ends the session without another call.
  void abort();

  // The connection is there, and nothing of it has been read: the place for limits and a greeting.
  virtual void on_open() {}
  // No more requests, please: Sessions::drain() has been called, or had been before on_open(). What
  // is not done when the grace is over is reset, and on_closed() is told Error::deadline. As it
  // stands: what was written is still sent, and nothing more is read.
  virtual void on_drain() { stream_.close(); }
  // The last call, as StreamHandler's. Must not be private in a derived class.
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
  unsigned drain_ = 0;  // Which of the list's it has been told of.
};

// What Sessions is, whatever they are sessions of.
class SPATE_EXPORT SessionList {
 public:
  SessionList(const SessionList&) = delete;
  SessionList& operator=(const SessionList&) = delete;

  Loop& loop() const { return sweep_.loop(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Has all of them end: each is told on_drain(), and may take until `grace` from now; so may those
  // that come later. `done` is called once, from the loop, when none is left.
  void drain(Nanos grace, std::move_only_function<void()> done = {});
  // Resets all of them now, and tells each that it was closed with `error`.
  void end_all(std::error_code error);

 protected:
  using Visitor = void (*)(Session& session, void* context);

  explicit SessionList(Loop& loop);
  ~SessionList();

  // False if the session has ended itself.
  bool enter(Session& session, Stream stream);
  // It has ended. It is destroyed when none of its callbacks is running any more.
  void retire(Session& session);
  // `visitor` may end any of them, and destroy the list. False if it has.
  bool visit_each(Visitor visitor, void* context);

 private:
  friend class Session;
  class Visit;

  bool is_draining() const { return drained_by_ > Nanos{0}; }
  void drain(Session& session);
  void sweep_soon();
  void sweep();
  static void destroy_all(Session*& first);
  Session*& first_of(const Session& session) { return session.is_over_ ? ended_ : live_; }
  void link(Session& session);
  void unlink(Session& session);

  Session* live_ = nullptr;
  Session* ended_ = nullptr;
  Visit* visits_ = nullptr;
  std::size_t size_ = 0;
  Nanos drained_by_{0};  // In loop time; zero unless it is being drained.
  unsigned drains_ = 0;
  std::move_only_function<void()> done_;
  Timer sweep_;
};

inline Session::~Session() {
  if (list_ != nullptr) list_->unlink(*this);
}

inline void Session::abort() {
  stream_.abort();
  if (list_ != nullptr) list_->retire(*this);
}

// The sessions of one loop.
template <class T>
class Sessions : public SessionList {
 public:
  explicit Sessions(Loop& loop) : SessionList(loop) {}

  // Makes a session T(args...) of a connection. nullptr if memory runs out, with which the
  // connection is closed, or if the session has ended itself at once.
  template <class... Args>
  T* open(Stream stream, Args&&... args) {
    static_assert(std::derived_from<T, Session> && !std::is_final_v<T>,
                  "a session derives from spate::Session, publicly, and is not final");
    auto* session = new (std::nothrow) Owned(*this, std::forward<Args>(args)...);
    if (session == nullptr) return nullptr;
    return enter(*session, std::move(stream)) ? session : nullptr;
  }

  // In no order. `visit` gets a T&, and may end any of them; those that are opened meanwhile may be
  // left out.
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
      sessions_.retire(*this);
      T::on_closed(error);
    }

   private:
    Sessions& sessions_;
  };
};

}  // namespace spate
