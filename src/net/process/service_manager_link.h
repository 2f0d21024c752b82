// ServiceManagerLink: the socket to the service manager, the messages that wait for it, and the
// notifications of its watchdog.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/background_timer.h"
#include "spate/hooks.h"
#include "spate/net/address.h"
#include "sys/descriptor.h"

namespace spate {

class ServiceManagerLink {
 public:
  static constexpr std::size_t kMostWaiting = 16;

  ServiceManagerLink(Loop& loop, sys::Descriptor socket, const Address& manager, Nanos watchdog);
  ~ServiceManagerLink();

  // Returns false when memory runs out.
  bool start();
  // Sends the message, or queues it if the socket is full.
  std::error_code send(std::string_view message);
  // As above; replaces a message that waits and begins with the same `name`.
  std::error_code replace(std::string_view name, std::string_view message);

  Nanos watchdog() const { return watchdog_; }
  std::error_code last_error() const { return last_error_; }
  bool may_be_touched() const;

 private:
  std::error_code check() const;
  std::error_code queue(std::string_view message);
  long transmit(std::string_view message);
  void notify_watchdog();
  void send_waiting();

  Loop& loop_;
  const sys::Descriptor socket_;
  const Address manager_;
  const Nanos watchdog_;
  const std::uint32_t generation_;  // Of forks.
  std::deque<std::string> waiting_;
  bool owes_watchdog_ = false;
  std::error_code last_error_;
  BackgroundTimer notify_;
  BackgroundTimer retry_;
  Cleanup loop_ends_;  // Active while the loop exists.
};

}  // namespace spate
