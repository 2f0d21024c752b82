// Wire: the carrier of an exchange: an HTTP/1 connection, or an HTTP/2 stream. The functions are
// those of Exchange; the caller checks their preconditions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/http/fields.h"
#include "spate/http/status.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/time.h"

namespace spate::http {

class ExchangeState;
class ServerCore;

// The contents of a response's header section.
struct ServerResponseHead {
  Status status;
  const Fields* fields = nullptr;
  std::string_view content_type{};      // Added to the fields, if not empty.
  std::optional<std::uint64_t> size{};  // The size of the body.
  std::string_view upgrade{};           // With 426: the protocol that the client must request.
};

class Wire {
 public:
  virtual ServerCore& server() const = 0;
  virtual bool is_full() const = 0;
  virtual std::size_t queued() const = 0;
  virtual Address peer() const = 0;
  // Returns whether a peer without an address is not at a network: it has a unix socket, or is in
  // memory.
  virtual bool is_local() const = 0;
  virtual std::optional<TlsInfo> tls() const = 0;

  // Sends the header section and, in the same write, the begin of the body. Drops the body of a
  // response that has none (RFC 9110 §6.4.1).
  virtual bool send_head(ExchangeState& state, const ServerResponseHead& head, Bytes body) = 0;
  virtual bool send(ExchangeState& state, Bytes body) = 0;
  virtual bool send(ExchangeState& state, Buffer&& body) = 0;
  virtual std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                                    std::uint64_t size, ThreadPool& pool) = 0;
  // Sends the end of the body, if the framing has one.
  virtual bool send_end(ExchangeState& state, const Fields& trailers) = 0;
  virtual bool inform(ExchangeState& state, const ServerResponseHead& head) = 0;

  // Resumes reading the body: at first, and after a pause.
  virtual void read_body(ExchangeState& state) = 0;
  virtual void pause(ExchangeState& state) = 0;
  virtual bool set_deadline(Nanos timeout) = 0;
  // Schedules settle(), which the loop calls. For events inside a call to the Exchange.
  virtual void settle_later(ExchangeState& state) = 0;
  virtual void settle(ExchangeState& state) = 0;
  // Resets the exchange. No callback follows.
  virtual void abort(ExchangeState& state) = 0;
  // Resets the exchange, whose response cannot be completed, and calls its handler.
  virtual void lose(ExchangeState& state, std::error_code error) = 0;
  virtual Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                                 const Fields& fields) = 0;
  // Called once a second while the exchange is in progress.
  virtual void on_tick(ExchangeState& state, Nanos now) = 0;

 protected:
  ~Wire() = default;
};

}  // namespace spate::http
