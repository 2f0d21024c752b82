// Client: stays connected to one peer: reconnects after a failed attempt and after the end of the
// connection, with exponential backoff and jitter.
//
// Ownership: a handle, as Listener. Destroying it ends the attempts; Streams that it has passed to
// the callback stay open. The loop may be destroyed first; the Client then does nothing.
// Threads: the loop's thread only.
// The callback is that of connect() (connect.h), called from the loop after every attempt, with a
// Stream or an error. The Stream is the callback's: it is closed unless it is moved. When it has
// ended, for whatever reason, the client reconnects. Inside the callback everything is allowed,
// destroying the Client included.
//
// The delay before an attempt doubles with each consecutive failure, from `first_delay` to
// `max_delay`. Random jitter shortens it, so that the clients of a restarted server do not connect
// all at once. A connection that ends within `steady_after` counts as a failure.
//
// With ClientOptions::tls, an attempt has succeeded when the two have shaken hands.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/time.h"

namespace spate {

class Reconnector;

struct ClientOptions {
  // For each attempt, with its handshake.
  ConnectOptions connect{.timeout = Nanos{10'000'000'000}};
  Nanos first_delay{500'000'000};  // After one failure.
  Nanos max_delay{30'000'000'000};
  // The part of a delay that is random: 0 for none, 1 for all of it.
  double jitter = 0.5;
  Nanos steady_after{5'000'000'000};  // A connection of this age resets the count of failures.
  // Give up, and become idle, after so many consecutive failures; 0: never. If the last of them was
  // the early end of a connection, the callback is not told: only that Stream's handler is.
  std::uint32_t max_failures = 0;
  // A client's (TlsContext::client()): the connection speaks TLS, with one who can show that he is
  // the host, or has the IP address. None: it does not.
  TlsContext tls{};
};

class SPATE_EXPORT Client {
 public:
  enum class State : std::uint8_t {
    idle,        // Before connect(), after stop() or disconnect(), or given up.
    connecting,  // Resolving, connecting, or shaking hands.
    connected,   // The Stream that the callback got is open.
    waiting,     // For the next attempt.
  };

  // Idle; all functions do nothing.
  Client() = default;
  Client(Client&& other) noexcept : reconnector_(std::exchange(other.reconnector_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    Client moved(std::move(other));
    std::swap(reconnector_, moved.reconnector_);  // The old one goes now, not with `other`.
    return *this;
  }
  ~Client();

  // Idle until connect(). A name is resolved for each attempt. Errors: EINVAL for an address
  // without a family, an empty name, a server's TlsContext, or one for a path; ENOMEM.
  [[nodiscard("a Client that nobody keeps is closed at once")]]
  static Result<Client> create(Loop& loop, const Address& address, OnConnected callback,
                               const ClientOptions& options = {});
  [[nodiscard("a Client that nobody keeps is closed at once")]]
  static Result<Client> create(Loop& loop, std::string_view host, std::uint16_t port,
                               OnConnected callback, const ClientOptions& options = {});

  // Connects, and stays connected from now on; if waiting, retries at once. Never calls back from
  // inside. Resets the count of failures unless an attempt is in progress.
  void connect();
  // Stops connecting. An open connection is closed as by Stream::close().
  void disconnect();
  // Stops connecting. An open connection stays open.
  void stop();

  State state() const;
  // Attempts so far, and how many of them succeeded.
  std::uint64_t attempts() const;
  std::uint64_t connections() const;
  // Consecutive failures.
  std::uint32_t failures() const;
  // Why the last attempt failed; no error if it succeeded.
  std::error_code last_error() const;
  // The same in words, for a log, as those of TlsFailure. Valid until the next attempt ends.
  std::string_view last_failure() const;
  // Time to the next attempt; zero unless waiting.
  Nanos retry_in() const;

 private:
  explicit Client(Reconnector* reconnector) : reconnector_(reconnector) {}
  Reconnector* own() const;

  Reconnector* reconnector_ = nullptr;
};

}  // namespace spate
