// ConnectRace: tries addresses until one connects. The next address is tried some time after the
// last one, or as soon as that fails. No attempt is cancelled before one connects: the first
// address may only be slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/loop_function.h"
#include "net/connect/connect_attempt.h"
#include "net/connect/connect_socket.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/net/connect.h"
#include "spate/timer.h"
#include "sys/socket.h"

namespace spate {

class ConnectRace final : public ConnectAttempt {
 public:
  // The timeout counts from here.
  ConnectRace(Loop& loop, OnSocket callback, const ConnectOptions& options);

  bool is_pending() const override { return static_cast<bool>(callback_); }
  // ---- none of these calls the callback; the loop does
  // Appends addresses.
  void add(const std::vector<Address>& addresses);
  // As above, then alternates IPv6 and IPv4 among the untried addresses, beginning with the family
  // that was not tried last.
  void add_by_turns(const std::vector<Address>& addresses);
  // Tries the first address.
  void begin();
  bool has_begun() const { return has_begun_; }
  // Called when no more addresses follow; before this, running out of them is not a failure. `none`
  // is the result if there was no address.
  void close(std::error_code none);

 private:
  // The attempt for one address.
  class Attempt {
   public:
    Attempt(ConnectRace& race, const Address& address, sys::Descriptor socket);
    ~Attempt() { io_.stop_before_close(); }
    bool start() { return io_.start(); }
    sys::Descriptor take() {
      io_.stop();
      return std::move(socket_);
    }
    // Returns 0 if connected, or an errno.
    int outcome() const;

   private:
    void on_writable() { race_.on_result(*this); }
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
  void on_result(Attempt& attempt);
  void lose_if_all_have_failed();
  void give_up(std::error_code error);
  void end(Result<sys::Descriptor> result);
  void stop();
  void on_fork();

  Loop& loop_;
  LoopFunction<void(Result<sys::Descriptor>)> callback_;
  ConnectOptions options_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;
  Nanos last_attempt_{0};  // Loop time.
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::error_code error_;  // From the last address that failed.
  Timer attempt_delay_;    // Until the next address is tried.
  Timer limit_;
  Fork forked_;
  bool has_begun_ = false;
  bool is_closed_ = false;
};

}  // namespace spate
