// connect(): a connection to an address, or to a host by its name.
//
// Ownership: the Connecting that is returned stands for the attempt; destroying it cancels, and
// nobody is called. Threads: the loop's thread only.
// The callback is called once, from the loop and never from inside connect(); with a Stream, or
// with what went wrong. Everything is allowed inside, destroying the Connecting included.
//
// By name: the loop's resolver (resolver.h) is asked for IPv6 and for IPv4 addresses at once, and
// what comes of it is raced as RFC 8305 has it. Attempts begin with the first IPv6 addresses, or
// `resolution_delay` after the first IPv4 ones; the families take turns, IPv6 first; another
// address is tried every `attempt_delay` or as soon as one fails, and none is given up before there
// is a winner. Addresses that come later take part.
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
  Address local{};       // Where to connect from, which no address of another family can be reached
                         // from (EAFNOSUPPORT); none leaves it to the kernel.
  bool no_delay = true;  // TCP.
  Nanos attempt_delay{250'000'000};    // Before the next address is tried as well.
  Nanos resolution_delay{50'000'000};  // How long IPv4 waits for what IPv6 addresses there are.
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
