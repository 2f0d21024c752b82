// Wire: what carries an exchange: a connection of HTTP/1, or a stream of HTTP/2. The functions
// are those of Exchange; whoever calls them has seen to it that they make sense now.
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

// What an answer's head says.
struct AnswerHead {
  Status status;
  const Fields* fields = nullptr;
  std::string_view content_type{};      // Beside the fields, if not empty.
  std::optional<std::uint64_t> size{};  // Of the body.
};

class Wire {
 public:
  virtual ServerCore& server() const = 0;
  virtual bool is_full() const = 0;
  virtual std::size_t queued() const = 0;
  virtual Address peer() const = 0;
  virtual std::optional<TlsInfo> tls() const = 0;

  // The head and, in the same send, the beginning of the body.
  virtual bool send_head(ExchangeState& state, const AnswerHead& head, Bytes body) = 0;
  virtual bool send(ExchangeState& state, Bytes body) = 0;
  virtual bool send(ExchangeState& state, Buffer&& body) = 0;
  virtual std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                                    std::uint64_t size) = 0;
  // The end of the body, if it has to be marked.
  virtual bool send_end(ExchangeState& state, const Fields& trailers) = 0;
  virtual bool inform(ExchangeState& state, const AnswerHead& head) = 0;

  // The body is asked for, again after a pause.
  virtual void read_body(ExchangeState& state) = 0;
  virtual void pause(ExchangeState& state) = 0;
  virtual bool set_deadline(Nanos timeout) = 0;
  // Something has ended inside a call to the Exchange; settle() is called by the loop.
  virtual void settle_later(ExchangeState& state) = 0;
  virtual void settle(ExchangeState& state) = 0;
  // Resets it. No callback follows.
  virtual void abort(ExchangeState& state) = 0;
  virtual Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                                 const Fields& fields) = 0;
  // Once a second while the exchange is in progress.
  virtual void on_tick(ExchangeState& state, Nanos now) = 0;

 protected:
  ~Wire() = default;
};

}  // namespace spate::http
