// connect(): connects to an address, or to a host by name.
//
// Ownership: the returned Connecting is the handle of the attempt; destroying it cancels, without a
// callback. Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside connect(), with a Stream or an
// error. Inside it everything is allowed, destroying the Connecting included.
//
// By name: IPv6 and IPv4 addresses are resolved in parallel (resolver.h) and raced (RFC 8305, happy
// eyeballs). Attempts begin when the IPv6 addresses are known, or `resolution_delay` after the IPv4
// ones; the families alternate, IPv6 first. The next address is tried after `attempt_delay`, or as
// soon as one fails. No attempt is abandoned before one succeeds. Addresses that are resolved later
// join the race.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

struct ConnectOptions {
  Nanos timeout{0};      // Total, name resolution included; zero leaves it to the kernel.
  Address local{};       // The local address to bind to. Limits the family (EAFNOSUPPORT for
                         // addresses of the other one). Empty: the kernel's choice.
  bool no_delay = true;  // TCP_NODELAY, for TCP.
  Nanos attempt_delay{250'000'000};    // Before the next address is tried; at least 10 ms.
  Nanos resolution_delay{50'000'000};  // How long one family waits for the preferred one.
  bool ipv6_first = true;              // By name: prefer IPv6; false: prefer IPv4.
};

using OnConnected = Function<void(Result<Stream>)>;

class ConnectAttempt;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT ConnectAttemptEnd {
  void operator()(ConnectAttempt* attempt) const;
  static bool is_pending(const ConnectAttempt& attempt);
};

class [[nodiscard("a discarded Connecting cancels the attempt at once")]] Connecting {
 public:
  Connecting() = default;
  explicit Connecting(ConnectAttempt* attempt) : attempt_(attempt) {}

  // Cancels the attempt. No callback follows.
  void cancel() { attempt_.reset(); }
  // True if the callback has not been called yet.
  bool is_pending() const {
    return attempt_ != nullptr && ConnectAttemptEnd::is_pending(*attempt_);
  }

 private:
  std::unique_ptr<ConnectAttempt, ConnectAttemptEnd> attempt_;
};

// Connects to one address. Errors of the callback: the kernel's for the last address that was tried
// (ECONNREFUSED, ENETUNREACH, ...); Error::connect_timeout; EINVAL without an address; EMFILE,
// ENFILE, ENOMEM. ECONNREFUSED is also returned when the kernel connected the socket to itself,
// which can happen at a local port where nothing listens.
SPATE_EXPORT Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                                const ConnectOptions& options = {});
// Connects to one peer that has several addresses, which are raced in the order given.
SPATE_EXPORT Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                                const ConnectOptions& options = {});
// Connects to a host by name, or by an IP address as text. If the name has no address, the error is
// that of resolve(), usually a NameError.
SPATE_EXPORT Connecting connect(Loop& loop, std::string_view host, std::uint16_t port,
                                OnConnected callback, const ConnectOptions& options = {});

}  // namespace spate
