// Acceptor: accepts connections from a listening socket, and passes each to the derived class,
// unless paused, full, or waiting after an error. The owner destroys it by abandon(), also inside
// hand_over().
#pragma once

#include <new>
#include <system_error>
#include <utility>

#include "base/abandonable.h"
#include "net/stream/hub.h"
#include "spate/io.h"
#include "spate/net/listener.h"
#include "spate/timer.h"
#include "sys/descriptor.h"

namespace spate {

class Acceptor : private Abandonable<Acceptor> {
 public:
  // An A, which derives from Acceptor, made of the hub, the socket, the options and `args`; it
  // listens. nullptr if memory has run out; `socket` is still the caller's then.
  template <class A, class... Args>
  static A* make(Loop& loop, sys::Descriptor& socket, const ListenOptions& options,
                 Args&&... args) {
    Hub* hub = Hub::of(loop);
    if (hub == nullptr) return nullptr;
    A* acceptor =
        new (std::nothrow) A(*hub, std::move(socket), options, std::forward<Args>(args)...);
    if (acceptor == nullptr || acceptor->open()) return acceptor;
    Acceptor& failed = *acceptor;
    socket = std::move(failed.socket_);
    failed.abandon();
    return nullptr;
  }
  // The owner is being destroyed: closes the socket; no callback follows.
  void abandon();
  // The same, but for the socket, which is the caller's.
  int release();

  bool may_be_touched() const;
  void pause();
  void resume();
  // What finish() does, in the next turn.
  void close();
  // Accepts what is in the backlog, and closes the socket. From the loop only.
  void finish();
  int fd() const { return socket_.get(); }
  std::error_code last_error() const { return last_error_; }

 protected:
  Acceptor(Hub& hub, sys::Descriptor socket, const ListenOptions& options);
  virtual ~Acceptor();

  // False if memory has run out.
  virtual bool open() { return is_full() || io_.start(); }
  // Listens if there is nothing against it.
  void update();
  bool is_listening() const { return io_.is_active(); }

 private:
  friend class Abandonable<Acceptor>;

  // How long accepting rests when there is no descriptor or no memory for another connection.
  static constexpr Nanos kRest{50'000'000};

  // Whether no more are wanted for now. update() is called when that changes.
  virtual bool is_full() const = 0;
  // Takes the socket over, and may call user code. False if memory has run out.
  virtual bool hand_over(sys::Descriptor& socket, const Address& peer) = 0;

  bool is_done() const { return is_abandoned() || !socket_.is_open(); }
  void on_rested();
  void stop_listening();
  void accept_some();
  bool accept_one();
  void rest(long error);

  Hub& hub_;
  sys::Descriptor socket_;
  Io io_;
  Timer resting_;
  std::error_code last_error_;
  const int backlog_;
  const int accepts_per_turn_;
  const bool sets_no_delay_;  // Newcomers do not have it from the listening socket.
  bool paused_ = false;
  bool is_closing_ = false;
};

}  // namespace spate
