// Client: stays connected to one peer. It reconnects after a failed attempt and after the end of
// the connection, with exponential backoff and jitter.
//
// Ownership: a handle, as Listener. Destroying it ends the attempts; Streams that it has passed to
// the callback stay open. The loop may be destroyed first; the Client then does nothing.
// Threads: the loop's thread only.
// The callback is that of connect() (connect.h), called from the loop after every attempt, with a
// Stream or an error. The Stream is the callback's: it is closed unless it is moved. When that
// connection ends, for whatever reason, the Client reconnects. Inside the callback everything is
// allowed, destroying the Client included.
//
// The delay before an attempt doubles with each consecutive failure, from `first_delay` to
// `max_delay`. Random jitter shortens it, so that the clients of a restarted server do not connect
// all at once. A connection that ends within `steady_after` counts as a failure.
//
// With ClientOptions::tls, an attempt succeeds when the TLS handshake is complete.
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
  // For each attempt; the timeout includes the TLS handshake.
  ConnectOptions connect{.timeout = Nanos{10'000'000'000}};
  Nanos first_delay{500'000'000};  // After one failure.
  Nanos max_delay{30'000'000'000};
  // The share of a delay that is random: 0 for none, 1 for all of it.
  double jitter = 0.5;
  Nanos steady_after{5'000'000'000};  // A connection of this age resets the count of failures.
  // Stops and becomes idle after so many consecutive failures; 0: never. If the last failure was an
  // early end of a connection, only that Stream's handler is called, not the callback.
  std::uint32_t max_failures = 0;
  // A client context (TlsContext::client()): the connection uses TLS, and the server's certificate
  // must be valid for the host or the IP address. Empty: a plain connection.
  TlsContext tls{};
};

class SPATE_EXPORT Client {
 public:
  enum class State : std::uint8_t {
    idle,        // Before connect(), after stop() or disconnect(), or after `max_failures`.
    connecting,  // Resolving, connecting, or in the TLS handshake.
    connected,   // The Stream passed to the callback is open.
    waiting,     // Waiting for the next attempt.
  };

  // Makes an idle Client whose functions do nothing.
  Client() = default;
  Client(Client&& other) noexcept : reconnector_(std::exchange(other.reconnector_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    Client moved(std::move(other));
    std::swap(reconnector_, moved.reconnector_);  // Destroys the old one here, not with `other`.
    return *this;
  }
  ~Client();

  // Makes a Client that is idle until connect(). A name is resolved for each attempt. Errors:
  // EINVAL for an address without a family, an empty name, a server's TlsContext, or a TlsContext
  // with a path; ENOMEM.
  [[nodiscard("a discarded Client is closed at once")]]
  static Result<Client> create(Loop& loop, const Address& address, OnConnected callback,
                               const ClientOptions& options = {});
  [[nodiscard("a discarded Client is closed at once")]]
  static Result<Client> create(Loop& loop, std::string_view host, std::uint16_t port,
                               OnConnected callback, const ClientOptions& options = {});

  // Connects, and stays connected from now on. If waiting, retries at once. Never calls the
  // callback from inside. Resets the count of failures unless an attempt is in progress.
  void connect();
  // Stops connecting, and closes an open connection as Stream::close() does.
  void disconnect();
  // Stops connecting. An open connection stays open.
  void stop();

  State state() const;
  // Return the number of attempts, and how many of them succeeded.
  std::uint64_t attempts() const;
  std::uint64_t connections() const;
  // Returns the number of consecutive failures.
  std::uint32_t failures() const;
  // Returns why the last attempt failed; no error if it succeeded.
  std::error_code last_error() const;
  // Returns the reason as text, for a log, as TlsFailure::text. Valid until the next attempt ends.
  std::string_view last_failure() const;
  // Returns the time to the next attempt; zero unless waiting.
  Nanos retry_in() const;

 private:
  explicit Client(Reconnector* reconnector) : reconnector_(reconnector) {}
  Reconnector* own() const;

  Reconnector* reconnector_ = nullptr;
};

}  // namespace spate
