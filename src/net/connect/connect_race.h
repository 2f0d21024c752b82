// ConnectRace: tries addresses, each some time after the one before, or as soon as that has failed,
// until one connects. No attempt is given up before: the first one may only be slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/connect/connect_attempt.h"
#include "net/connect/connect_socket.h"
#include "spate/io.h"
#include "spate/net/connect.h"
#include "spate/timer.h"
#include "sys/socket.h"

namespace spate {

class ConnectRace final : public ConnectAttempt {
 public:
  // The deadline counts from here.
  ConnectRace(Loop& loop, OnSocket callback, const ConnectOptions& options);

  bool is_pending() const override { return static_cast<bool>(callback_); }
  // None of these calls back; the loop does.
  // Appends addresses.
  void add(const std::vector<Address>& addresses);
  // The same; then alternates IPv6 and IPv4 among those that have not been tried, beginning with
  // the family that was not tried last.
  void add_by_turns(const std::vector<Address>& addresses);
  // Begins with the first address.
  void begin();
  bool has_begun() const { return has_begun_; }
  // No more addresses will be added; before, running out of them is not a failure. `none` is the
  // result if there was no address.
  void close(std::error_code none);

 private:
  // One address being tried.
  class Runner {
   public:
    Runner(ConnectRace& race, const Address& address, sys::Descriptor socket);
    ~Runner() { io_.stop_before_close(); }
    bool start() { return io_.start(); }
    sys::Descriptor take() {
      io_.stop();
      return std::move(socket_);
    }
    // 0 if connected, or an errno.
    int outcome() const;

   private:
    void on_writable() { race_.on_answer(*this); }
    bool is_connected_to_itself() const;

    ConnectRace& race_;
    std::uint16_t port_;
    sys::Descriptor socket_;
    Io io_;
  };

  void try_soon(Nanos delay);
  void try_next();
  bool try_one();
  long try_address(const Address& address);
  long prepare(int fd, const Address& address);
  void wake();
  void on_answer(Runner& runner);
  void lose_if_all_have_failed();
  void give_up(std::error_code error);
  void end(Result<sys::Descriptor> result);

  Loop& loop_;
  OnSocket callback_;
  ConnectOptions options_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;
  Nanos last_attempt_{0};  // In loop time.
  std::vector<std::unique_ptr<Runner>> runners_;
  std::error_code error_;  // Of the last address that failed.
  Timer patience_;         // Until the next address is tried.
  Timer limit_;
  bool has_begun_ = false;
  bool is_closed_ = false;
};

}  // namespace spate
