// Acceptor: what a Listener is the handle of.
#pragma once

#include <memory>

#include "base/abandonable.h"
#include "net/stream/counted_transport.h"
#include "spate/io.h"
#include "spate/net/listener.h"
#include "spate/timer.h"
#include "sys/descriptor.h"

namespace spate {

class Hub;

class Acceptor final : private CountedTransport::Watcher, private Abandonable<Acceptor> {
 public:
  // Takes `socket` over when it has returned something.
  static Result<Acceptor*> make(Loop& loop, sys::Descriptor& socket, Listener::OnAccept on_accept,
                                const ListenOptions& options);
  // The Listener is being destroyed: nobody is called any more, and the socket is closed.
  void abandon();
  // The same, but for the socket, which is the caller's.
  int release();

  bool may_be_touched() const;
  void pause();
  void resume();
  // What finish() does, in the next turn.
  void close();
  // Hands over who waits in the backlog, and closes the socket. From the loop only.
  void finish();
  int fd() const { return socket_.get(); }
  std::uint64_t accepted() const { return accepted_; }
  std::size_t connections() const { return accepted_ones_->open(); }
  std::error_code last_error() const { return last_error_; }

 private:
  friend class Abandonable<Acceptor>;

  // How long accepting rests when there is no descriptor or no memory for another connection.
  static constexpr Nanos kRest{50'000'000};

  Acceptor(Hub& hub, sys::Descriptor socket, Listener::OnAccept on_accept,
           const ListenOptions& options);
  ~Acceptor();

  void on_left() override;
  bool is_full() const { return accepted_ones_->open() >= options_.max_connections; }
  bool is_done() const { return is_abandoned() || !socket_.is_open(); }
  void update();
  void on_rested();
  void stop_listening();
  void accept_some();
  bool accept_one();
  bool hand_over(sys::Descriptor socket, const Address& peer);
  void rest(long error);

  Hub& hub_;
  sys::Descriptor socket_;
  Listener::OnAccept on_accept_;
  ListenOptions options_;
  Io io_;
  Timer resting_;
  CountedTransport* accepted_ones_;  // nullptr once it is abandoned.
  std::uint64_t accepted_ = 0;
  std::error_code last_error_;
  bool sets_no_delay_;  // Newcomers do not have it from the listening socket.
  bool paused_ = false;
  bool is_closing_ = false;
};

}  // namespace spate
