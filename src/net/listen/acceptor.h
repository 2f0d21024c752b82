// Acceptor: accepts connections from a listening socket, unless it is paused, full, or waiting
// after an error. Passes each to the derived class. The owner destroys it by abandon(), also inside
// hand_over().
#pragma once

#include <new>
#include <system_error>
#include <utility>

#include "base/abandonable.h"
#include "net/stream/loop_streams.h"
#include "spate/io.h"
#include "spate/net/listener.h"
#include "spate/timer.h"
#include "sys/descriptor.h"

namespace spate {

class Acceptor : private Abandonable<Acceptor> {
 public:
  // Makes an A, which derives from Acceptor, from the LoopStreams, the socket, the options and
  // `args`, and listens. nullptr when memory runs out; `socket` is still the caller's then.
  template <class A, class... Args>
  static A* make(Loop& loop, sys::Descriptor& socket, const ListenOptions& options,
                 Args&&... args) {
    LoopStreams* loop_state = LoopStreams::of(loop);
    if (loop_state == nullptr) return nullptr;
    A* acceptor =
        new (std::nothrow) A(*loop_state, std::move(socket), options, std::forward<Args>(args)...);
    if (acceptor == nullptr || acceptor->open()) return acceptor;
    Acceptor& failed = *acceptor;
    socket = std::move(failed.socket_);
    failed.abandon();
    return nullptr;
  }
  // Called by the owner's destructor: closes the socket; no callback follows.
  void abandon();
  // As above, but returns the socket, which the caller then owns.
  int release();

  bool may_be_touched() const;
  void pause();
  void resume();
  // Calls finish() in the next turn.
  void close();
  // Accepts the connections in the backlog, and closes the socket. From the loop only.
  void finish();
  int fd() const { return socket_.get(); }
  std::error_code last_error() const { return last_error_; }

 protected:
  Acceptor(LoopStreams& loop_state, sys::Descriptor socket, const ListenOptions& options);
  virtual ~Acceptor();

  // False when memory runs out.
  virtual bool open() { return is_full() || io_.start(); }
  // Listens if nothing prevents it.
  void update();
  bool is_listening() const { return io_.is_active(); }

 private:
  friend class Abandonable<Acceptor>;

  // How long accepting pauses when there is no descriptor or no memory for another connection.
  static constexpr Nanos kRest{50'000'000};

  // Returns whether no more connections are wanted for now. update() must be called when this
  // changes.
  virtual bool is_full() const = 0;
  // Called after the socket was closed and nothing more is accepted. May destroy the object.
  virtual void on_closed() {}
  // Takes ownership of the socket, and may call user code. False when memory runs out.
  virtual bool hand_over(sys::Descriptor& socket, const Address& peer) = 0;

  bool is_done() const { return is_abandoned() || !socket_.is_open(); }
  void on_rested();
  void stop_listening();
  template <class Function>
  void call_acceptor(Function function);
  void accept_some();
  bool accept_one();
  void rest(long error);

  LoopStreams& loop_state_;
  sys::Descriptor socket_;
  Io io_;
  Timer resting_;
  std::error_code last_error_;
  const int backlog_;
  const int accepts_per_turn_;
  const bool sets_no_delay_;  // The listening socket, which is the program's, does not have it, so
                              // accepted sockets do not inherit it.
  bool paused_ = false;
  bool is_closing_ = false;
};

}  // namespace spate
