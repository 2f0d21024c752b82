// Client: stays connected to one peer: connects, and connects again when an attempt has failed or
// the connection has ended, each time a while later.
//
// Ownership: a handle, as Listener. Destroying it ends the attempts; the Streams that were handed
// over are their owner's, and stay. The loop may be destroyed first; then nothing happens any more.
// Threads: the loop's thread only.
// The callback is the one of connect() (connect.h), called after every attempt, with a Stream or
// with why there is none, from the loop only. The Stream is the callback's: it is closed unless it
// is moved somewhere, and however it ends, the client then connects again. Inside the callback
// everything is allowed, destroying the Client included.
//
// The wait before an attempt doubles with each failure in a row, from `first_delay` to
// `max_delay`, and is made shorter by chance, so that the clients of a server that has come back
// do not come all at once. A connection that ends before it has lasted `steady_after` counts as a
// failure, too: a server that accepts and hangs up is not hammered.
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
#include "spate/time.h"

namespace spate {

class Reconnector;

struct ClientOptions {
  // Of each attempt; the timeout includes names.
  ConnectOptions connect{.timeout = Nanos{10'000'000'000}};
  Nanos first_delay{500'000'000};   // The wait after one failure.
  Nanos max_delay{30'000'000'000};  // The longest.
  // The share of a wait that chance may take off: 0 for none, 1 for all of it.
  double jitter = 0.5;
  Nanos steady_after{5'000'000'000};  // A connection that has lasted so long forgets the failures.
  // After so many failures in a row the client gives up and is idle; 0: never.
  std::uint32_t max_failures = 0;
};

class SPATE_EXPORT Client {
 public:
  enum class State : std::uint8_t {
    idle,        // Does not connect: not told to, told not to, or given up.
    connecting,  // An attempt is under way, or a name is being resolved.
    connected,   // The Stream that was handed over is open.
    waiting,     // For the next attempt.
  };

  // Connects to nobody: idle, and telling it anything does nothing.
  Client() = default;
  Client(Client&& other) noexcept : reconnector_(std::exchange(other.reconnector_, nullptr)) {}
  Client& operator=(Client&& other) noexcept {
    Client moved(std::move(other));
    std::swap(reconnector_, moved.reconnector_);  // The old one goes now, not with `other`.
    return *this;
  }
  ~Client();

  // Idle until connect(). A name is resolved anew for each attempt. Errors: EINVAL for an address
  // of no family or an empty name; ENOMEM.
  [[nodiscard("a Client that nobody keeps is closed at once")]]
  static Result<Client> create(Loop& loop, const Address& address, OnConnected callback,
                               const ClientOptions& options = {});
  [[nodiscard("a Client that nobody keeps is closed at once")]]
  static Result<Client> create(Loop& loop, std::string_view host, std::uint16_t port,
                               OnConnected callback, const ClientOptions& options = {});

  // Connects, and stays connected from now on. While it waits: at once. Calls nobody; the failures
  // so far are forgotten unless an attempt is under way.
  void connect();
  // Connects no more. A connection is closed in good order: what was written is sent first, and its
  // StreamHandler is told when it is done.
  void disconnect();
  // Connects no more. A connection stays as long as it lasts.
  void stop();

  State state() const;
  // Attempts so far, and how many brought a connection.
  std::uint64_t attempts() const;
  std::uint64_t connections() const;
  // In a row, just now.
  std::uint32_t failures() const;
  // Why the last attempt failed; no error if it did not, or there was none.
  std::error_code last_error() const;
  // Until the next attempt; zero unless it waits for it.
  Nanos retry_in() const;

 private:
  explicit Client(Reconnector* reconnector) : reconnector_(reconnector) {}
  Reconnector* own() const;

  Reconnector* reconnector_ = nullptr;
};

}  // namespace spate
