// ConnectRace: tries addresses, each a while after the one before or when that has failed, until
// one answers. None is given up before there is a winner: the first may only be slow.
#pragma once

#include <memory>
#include <vector>

#include "spate/io.h"
#include "spate/net/connect.h"
#include "spate/timer.h"
#include "sys/socket.h"

namespace spate {

class ConnectRace final : public ConnectAttempt {
 public:
  ConnectRace(Loop& loop, OnConnected callback, const ConnectOptions& options);

  // More addresses, behind those that are there. To be called from the loop, or before anything has
  // been tried.
  void add(std::vector<Address> addresses);
  // No more will be added. Until then, running out of addresses is no failure.
  void close() { is_closed_ = true; }
  // Begins. The result comes from the loop, even if it is known at once.
  void start();
  // Ends with `error` if nothing better has come.
  void give_up(std::error_code error);

 private:
  // One address being tried.
  class Runner {
   public:
    Runner(ConnectRace& race, sys::Descriptor socket);
    ~Runner() { io_.stop_closing(); }
    bool start() { return io_.start(); }
    sys::Descriptor take() {
      io_.stop();
      return std::move(socket_);
    }
    // What became of the attempt. The kernel may have refused to watch it.
    int error() const {
      return io_.is_active() ? sys::pending_error(socket_.get()) : io_.error().value();
    }

   private:
    void on_writable() { race_.on_answer(*this); }

    ConnectRace& race_;
    sys::Descriptor socket_;
    Io io_;
  };

  void try_soon(Nanos delay);
  void try_next();
  long try_address(const Address& address);
  long prepare(int fd, const Address& address);
  void on_answer(Runner& runner);
  void win(sys::Descriptor socket);
  void lose_if_all_have_failed();
  void end(std::expected<Stream, std::error_code> result);

  Loop& loop_;
  OnConnected callback_;
  ConnectOptions options_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::error_code error_;  // Of the last address that failed.
  Timer patience_;         // Until the next address is tried.
  Timer limit_;
  bool is_closed_ = false;
};

}  // namespace spate
