// Http1Connection: one HTTP/1 connection of a server. Parses requests from its Stream, one after
// the other, and writes their responses.
//
// An idle one has no ExchangeState; its size is what an idle connection costs beyond a Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

#include "http/codec/refusal.h"
#include "http/server/exchange_state.h"
#include "http/server/lifetime.h"
#include "http/server/server_connection.h"
#include "http/server/wire.h"
#include "spate/net/stream.h"

namespace spate::http {

class ServerCore;

class Http1Connection final : public ServerConnection, public Wire {
 public:
  Http1Connection(ServerCore& server, Stream stream, std::unique_ptr<Address> peer);
  ~Http1Connection() override;

  void start();

  // ---- ServerConnection

  void on_drain() override;
  void close_if_idle() override;
  void close_to_requests() override;
  void abort(std::error_code error) override;

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // ---- Wire

  ServerCore& server() const override { return server_; }
  bool is_full() const override { return stream_.is_full(); }
  std::size_t queued() const override { return stream_.queued(); }
  Address peer() const override;
  bool is_local() const override { return has(kLocal); }
  std::optional<TlsInfo> tls() const override { return tls_info(stream_); }
  bool send_head(ExchangeState& state, const ServerResponseHead& head, Bytes body) override;
  bool send(ExchangeState& state, Bytes body) override;
  bool send(ExchangeState& state, Buffer&& body) override;
  std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                            std::uint64_t size, ThreadPool& pool) override;
  bool send_end(ExchangeState& state, const Fields& trailers) override;
  bool inform(ExchangeState& state, const ServerResponseHead& head) override;
  void read_body(ExchangeState& state) override;
  void pause(ExchangeState& state) override;
  bool set_deadline(Nanos timeout) override;
  void settle_later(ExchangeState& state) override;
  void settle(ExchangeState& state) override;
  void abort(ExchangeState& state) override;
  void lose(ExchangeState& state, std::error_code error) override;
  Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                         const Fields& fields) override;
  void on_tick(ExchangeState& state, Nanos now) override;

 private:
  enum Flag : std::uint8_t {
    kInHead = 1 << 0,       // state_ is receiving a header section.
    kClosing = 1 << 1,      // No request follows: the response carries "close", or is an error.
    kClientEnded = 1 << 2,  // EOF was received.
    kHeld = 1 << 3,         // Input is left unread until the exchange continues.
    kInProxyHeader = 1 << 4,
    kLocal = 1 << 5,
    kHasDeadline = 1 << 6,  // The exchange has one.
  };

  // The unit is 2^27 ns, about an eighth of a second.
  static std::uint16_t tick_of(Nanos now) { return static_cast<std::uint16_t>(now.count() >> 27); }
  bool is_at_rest() const;
  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint8_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint8_t>(flags_ & ~flags); }

  // ---- input: each returns how many bytes it has used, and may destroy this

  std::size_t take(Bytes bytes);
  std::size_t take_proxy_header(Bytes bytes);
  std::size_t take_head(Bytes bytes);
  bool is_http2(Bytes bytes) const;
  void become_http2(ExchangeState& state);
  std::size_t take_request(ExchangeState& state);
  std::size_t take_body(ExchangeState& state, Bytes bytes);
  std::size_t take_sized(ExchangeState& state, Bytes bytes);
  std::size_t take_chunked(ExchangeState& state, Bytes bytes);
  void show_body(ExchangeState& state, Bytes piece);
  void refuse(ExchangeState& state, const Refusal& refusal);
  std::size_t hold();
  void update_reading();

  // ---- output

  Stream hand_over(ExchangeState& state);
  void cut(ExchangeState& state);

  // ---- the exchange

  void go_on(ExchangeState& state);
  void discard(ExchangeState& state);
  void drop_deadline();
  bool accepts_requests() const { return !has(kClosing | kClientEnded); }
  bool persists(const ExchangeState& state, Status status) const;
  void finish(ExchangeState& state, std::error_code error = {});
  void keep(ExchangeState& state);
  void go();  // Destroys this.
  bool is_stuck(const ExchangeState& state, Nanos now) const;

  ServerCore& server_;
  Stream stream_;
  ExchangeState* state_ = nullptr;      // The one receiving a header section, or in progress.
  // Set if a proxy named it, for the log, or by peer(): asking the kernel is a system call.
  mutable std::unique_ptr<Address> peer_;
  Lifetime lifetime_;
  std::uint32_t requests_ = 0;
  std::uint16_t served_at_ = 0;  // The tick of the last response.
  std::uint8_t flags_ = 0;
};
static_assert(sizeof(Http1Connection) <= 80);

}  // namespace spate::http
