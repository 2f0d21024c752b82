// What this room knows of OpenSSL: nothing. Three interfaces, which src/tls implements, so that a
// program that never makes a TlsContext need not link to it. They move no bytes, know no loop, and
// need no symbol of the core library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/secure/tls_wire.h"
#include "net/stream/result.h"
#include "spate/net/tls.h"

namespace spate {

// One connection's TLS. Results are those of a Transport: how many bytes, or a negated errno, or
// result_of(Error).
class TlsEngine {
 public:
  enum class Progress : std::uint8_t { again, done, failed };

  virtual ~TlsEngine() = default;
  // Goes on with the handshake as far as what has come allows. Once more after `again`.
  virtual Progress shake_hands(TlsWire& wire, TlsFailure& why) = 0;
  // Plaintext; 0 is the end that the peer has announced. -EAGAIN: all that has come is used up.
  virtual long decrypt(TlsWire& wire, std::span<std::byte> room) = 0;
  // All of it, in records of 16 KiB. 0, or an error.
  virtual long encrypt(TlsWire& wire, Bytes bytes) = 0;
  // Announces our end.
  virtual void say_goodbye(TlsWire& wire) = 0;
  // Whether there is plaintext that needs no more ciphertext.
  virtual bool has_decrypted() const = 0;
  // Gives back what memory only a busy connection needs.
  virtual void rest() = 0;
  virtual TlsInfo info() const = 0;
};

// One loop's share of a context.
class TlsLoopContext {
 public:
  virtual ~TlsLoopContext() = default;
  // `host` is the server's name or address; a server's engine needs none. nullptr, and why.
  virtual std::unique_ptr<TlsEngine> make_engine(std::string_view host, TlsFailure& why) = 0;
};

// What a TlsContext is the handle of. Any thread.
class TlsProvider {
 public:
  enum class Side : std::uint8_t { server, client };

  virtual ~TlsProvider() = default;
  virtual Side side() const = 0;
  virtual Nanos handshake_timeout() const = 0;
  // Changes with each reload().
  virtual std::uint64_t generation() const = 0;
  virtual std::unique_ptr<TlsLoopContext> open_for_loop(TlsFailure& why) = 0;
  virtual TlsResult<void> reload(const TlsServerOptions& options) = 0;
  virtual TlsResult<void> reload(const TlsClientOptions& options) = 0;
  virtual void rotate_tickets() = 0;
  virtual bool set_ticket_keys(std::span<const TlsTicketKey> keys) = 0;
};

}  // namespace spate
