// connect(): a connection to an address, or to a host by its name.
//
// Ownership: the Connecting that is returned stands for the attempt; destroying it cancels, and
// nobody is called. Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside connect(); with a Stream, or
// with what went wrong. Everything is allowed inside, destroying the Connecting included.
//
// By name: the loop's resolver (resolver.h) is asked for IPv6 and for IPv4 addresses at once, and
// what comes of it is raced as RFC 8305 has it. Attempts begin when the IPv6 addresses are there,
// or `resolution_delay` after the IPv4 ones; the families take turns, IPv6 first; another address
// is tried every `attempt_delay` or as soon as one fails, and none is given up before there is a
// winner. Addresses that come later take part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

struct ConnectOptions {
  Nanos timeout{0};      // For all of it, names included; zero is none but the kernel's own.
  Address local{};       // Where to connect from, which no address of another family can be reached
                         // from (EAFNOSUPPORT); none leaves it to the kernel.
  bool no_delay = true;  // TCP.
  // Before the next address is tried as well; 10 ms at least.
  Nanos attempt_delay{250'000'000};
  Nanos resolution_delay{50'000'000};  // How long one family waits for the one that goes first.
  bool ipv6_first = true;              // By name; else IPv4 goes first.
};

using OnConnected = std::move_only_function<void(Result<Stream>)>;

class ConnectAttempt;

// Ends an attempt. In the library, so that programs may be compiled with RTTI and it without.
struct SPATE_EXPORT ConnectAttemptEnd {
  void operator()(ConnectAttempt* attempt) const;
  static bool is_pending(const ConnectAttempt& attempt);
};

class [[nodiscard("a Connecting that nobody keeps gives the attempt up at once")]] Connecting {
 public:
  Connecting() = default;
  explicit Connecting(ConnectAttempt* attempt) : attempt_(attempt) {}

  // Nobody is called any more.
  void cancel() { attempt_.reset(); }
  // The callback has still to be called.
  bool is_pending() const {
    return attempt_ != nullptr && ConnectAttemptEnd::is_pending(*attempt_);
  }

 private:
  std::unique_ptr<ConnectAttempt, ConnectAttemptEnd> attempt_;
};

// Errors of the callback: what the kernel says of the last address that was tried (ECONNREFUSED,
// ENETUNREACH, ...; ECONNREFUSED also when the kernel has connected the socket to itself, as it may
// at a port of this machine where nobody listens); Error::connect_timeout, EMFILE, ENFILE, ENOMEM;
// EINVAL if there is no address.
SPATE_EXPORT Connecting connect(Loop& loop, const Address& address, OnConnected callback,
                                const ConnectOptions& options = {});
// Several addresses of one peer, raced in the order given.
SPATE_EXPORT Connecting connect(Loop& loop, std::vector<Address> addresses, OnConnected callback,
                                const ConnectOptions& options = {});
// A host by its name, or an IP address as text. The error is resolve()'s, a NameError mostly, if no
// address has been found.
SPATE_EXPORT Connecting connect(Loop& loop, std::string_view host, std::uint16_t port,
                                OnConnected callback, const ConnectOptions& options = {});

}  // namespace spate
