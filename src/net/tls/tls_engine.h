// The abstract TLS engine; net/ does not depend on OpenSSL. src/tls implements the three
// interfaces, so that only programs that make a TlsContext link to it. They perform no I/O, do not
// use a loop, and need only public symbols of the core library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "net/tls/tls_wire.h"
#include "spate/net/tls.h"

namespace spate {

// The TLS state of one connection. Results are those of a Transport: a number of bytes, or a
// negated errno, or result_of(Error).
class TlsEngine {
 public:
  enum class Progress : std::uint8_t { again, done, failed };

  virtual ~TlsEngine() = default;
  // Continues the handshake with the input received. To be called again after `again`.
  virtual Progress shake_hands(TlsWire& wire, TlsFailure& why) = 0;
  // Returns plaintext; 0 after close_notify. -EAGAIN: all input is used up.
  virtual long decrypt(TlsWire& wire, std::span<std::byte> room) = 0;
  // Encrypts all bytes, in records of 16 KiB. Returns 0, or an error.
  virtual long encrypt(TlsWire& wire, Bytes bytes) = 0;
  // Sends close_notify.
  virtual void say_goodbye(TlsWire& wire) = 0;
  // Returns whether there is plaintext that needs no more ciphertext.
  virtual bool has_decrypted() const = 0;
  // Frees memory that only a busy connection needs.
  virtual void rest() = 0;
  virtual TlsInfo info() const = 0;
};

// The part of a context that belongs to one loop.
class TlsLoopContext {
 public:
  virtual ~TlsLoopContext() = default;
  // Makes an engine. `host` is the server's name or address; empty for a server. On an error
  // returns nullptr, and sets `why`.
  virtual std::unique_ptr<TlsEngine> make_engine(std::string_view host, TlsFailure& why) = 0;
};

// The state behind a TlsContext. Any thread.
class TlsProvider {
 public:
  enum class Side : std::uint8_t { server, client };

  virtual ~TlsProvider() = default;
  virtual Side side() const = 0;
  virtual Nanos handshake_timeout() const = 0;
  // Returns whether `protocol` is among its protocols (ALPN).
  virtual bool offers(std::string_view protocol) const = 0;
  // Changes with each reload().
  virtual std::uint64_t generation() const = 0;
  virtual std::unique_ptr<TlsLoopContext> open_for_loop(TlsFailure& why) = 0;
  // Calls accept_tls().
  virtual Connecting accept(Stream plain, const TlsContext& context, OnSecured callback) = 0;
  virtual TlsResult<void> reload(const TlsServerOptions& options) = 0;
  virtual TlsResult<void> reload(const TlsClientOptions& options) = 0;
  virtual void rotate_tickets() = 0;
  virtual bool set_ticket_keys(std::span<const TlsTicketKey> keys) = 0;
};

}  // namespace spate
