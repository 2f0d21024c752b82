// Http1Connection: one connection of a server that speaks HTTP/1: takes requests from its Stream,
// one after the other, and writes their answers.
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
  Http1Connection(ServerCore& server, Stream stream);
  ~Http1Connection() override;

  void start();

  // ---- ServerConnection

  void on_drain() override {}  // Its answers say so.
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
  Address peer() const override {
    return forwarded_ == nullptr ? stream_.peer_address() : *forwarded_;
  }
  std::optional<TlsInfo> tls() const override { return tls_info(stream_); }
  bool send_head(ExchangeState& state, const AnswerHead& head, Bytes body) override;
  bool send(ExchangeState& state, Bytes body) override;
  bool send(ExchangeState& state, Buffer&& body) override;
  std::error_code send_file(ExchangeState& state, int file, std::uint64_t offset,
                            std::uint64_t size) override;
  bool send_end(ExchangeState& state, const Fields& trailers) override;
  bool inform(ExchangeState& state, const AnswerHead& head) override;
  void read_body(ExchangeState& state) override;
  void pause(ExchangeState& state) override;
  bool set_deadline(Nanos timeout) override { return stream_.set_deadline(timeout); }
  void settle_later(ExchangeState& state) override;
  void settle(ExchangeState& state) override;
  void abort(ExchangeState& state) override;
  Result<Stream> upgrade(ExchangeState& state, std::string_view protocol,
                         const Fields& fields) override;
  void on_tick(ExchangeState& state, Nanos now) override;

 private:
  enum Flag : std::uint8_t {
    kInHead = 1 << 0,       // state_ is that of a head that is not whole.
    kClosing = 1 << 1,      // Behind this answer.
    kClientEnded = 1 << 2,  // It sends no more.
    kHeld = 1 << 3,         // What has come is for later: not read until then.
    kAskedBody = 1 << 4,    // "100 Continue" has been sent.
    kInProxyHeader = 1 << 5,
  };

  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint8_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint8_t>(flags_ & ~flags); }

  // ---- receiving: each returns how many bytes it has used; afterwards this may be gone

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
  bool end_body(ExchangeState& state, const FieldsView& trailers);
  void refuse(ExchangeState& state, const Refusal& refusal);
  std::size_t hold();
  void update_reading();

  // ---- answering

  Stream hand_over(ExchangeState& state);

  // ---- the exchange

  void go_on(ExchangeState& state);
  bool may_discard(const ExchangeState& state) const;
  void discard(ExchangeState& state);
  bool is_last(const ExchangeState& state) const;
  void finish(ExchangeState& state, std::error_code error = {});
  void lose(ExchangeState& state, std::error_code error);
  void keep(ExchangeState& state);
  void go();  // It is destroyed.
  bool is_slow(const ExchangeState& state, Nanos now) const;
  bool is_stuck(ExchangeState& state, Nanos now) const;

  ServerCore& server_;
  Stream stream_;
  ExchangeState* state_ = nullptr;      // Of the head that is being read, or the exchange.
  std::unique_ptr<Address> forwarded_;  // Whom a proxy speaks for.
  Lifetime lifetime_;
  std::uint32_t requests_ = 0;
  std::uint8_t flags_ = 0;
};
static_assert(sizeof(Http1Connection) <= 80);

}  // namespace spate::http
