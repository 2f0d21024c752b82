// connect(): a connection to an address, or to a host by its name.
//
// Ownership: the Connecting that is returned stands for the attempt; destroying it cancels, and
// nobody is called. Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside connect(); with a Stream, or
// with what went wrong. Everything is allowed inside, destroying the Connecting included.
//
// By name: the system's resolver configuration decides (hosts file, search list, name servers), and
// the addresses that come of it are raced as RFC 8305 has it: IPv6 and IPv4 by turns, another one
// started every `attempt_delay` or as soon as one fails, no attempt ended before there is a winner.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

struct ConnectOptions {
  Nanos timeout{0};      // For all of it, names included; zero is none but the kernel's own.
  Address local{};       // Where to connect from; none leaves it to the kernel.
  bool no_delay = true;  // TCP.
  Nanos attempt_delay{250'000'000};  // Before the next address is tried as well.
};

using OnConnected = std::move_only_function<void(std::expected<Stream, std::error_code>)>;

// What carries out an attempt.
class SPATE_EXPORT ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
};

class [[nodiscard]] Connecting {
 public:
  Connecting() = default;
  explicit Connecting(std::unique_ptr<ConnectAttempt> attempt) : attempt_(std::move(attempt)) {}

  // Nobody is called any more.
  void cancel() { attempt_.reset(); }

 private:
  std::unique_ptr<ConnectAttempt> attempt_;
};

// Errors of the callback: what the kernel says of the last address that was tried (ECONNREFUSED,
// ENETUNREACH, ...), Error::connect_timeout, EMFILE, ENFILE, ENOMEM; the error category of names
// (resolver.h) when there is no such host.
SPATE_EXPORT Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                                const ConnectOptions& options = {});
// Several addresses of one peer, raced in the order given.
SPATE_EXPORT Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                                const ConnectOptions& options = {});

}  // namespace spate
