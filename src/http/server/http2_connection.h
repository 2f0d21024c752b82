// Http2Connection: one connection of a server that speaks HTTP/2: passes what comes to the session,
// and what the session has to the Stream. Its streams are Http2Wires.
//
// User code is called while the session takes bytes in, and while nothing of it runs; never while
// it makes bytes. What closes inside the session is told behind it (tell_streams()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

#include "http/codec/http2_frames.h"
#include "http/codec/http2_patience.h"
#include "http/codec/http2_session.h"
#include "http/server/http2_head.h"
#include "http/server/http2_wire.h"
#include "http/server/lifetime.h"
#include "http/server/server_connection.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/timer.h"

namespace spate::http {

class ServerCore;

class Http2Connection final : public ServerConnection, public Http2Events {
 public:
  Http2Connection(ServerCore& server, Stream stream, std::unique_ptr<Address> forwarded);
  ~Http2Connection() override;

  // The connection may be gone afterwards.
  void start();

  // ---- ServerConnection

  void on_drain() override;
  void close_to_requests() override;
  void abort(std::error_code error) override;

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override { flush(); }
  void on_closed(std::error_code error) override;

  // ---- what its streams use

  ServerCore& server() const { return server_; }
  Http2Session& session() const { return *session_; }
  Address peer() const { return forwarded_ == nullptr ? stream_.peer_address() : *forwarded_; }
  std::optional<TlsInfo> tls() const { return tls_info(stream_); }
  // Something is to be sent: soon, unless that is about to happen anyway.
  void flush_later();
  Loop& loop() const { return stream_.loop(); }
  // One of them has something to be told: Http2Wire::tell().
  void note_news() { has_news_ = true; }
  void settle(Http2Wire& wire, ExchangeState& state);

  // ---- Http2Events

  Http2Stream* on_stream(std::int32_t id) override;
  bool on_field(Http2Stream& stream, std::string_view name, std::string_view value) override;
  bool on_head(Http2Stream& stream, Http2End end) override;
  bool on_body(Http2Stream& stream, Bytes bytes) override;
  bool on_body_end(Http2Stream& stream) override;
  bool on_frame(Http2Frame kind) override;
  void on_violation(Broken broken) override;
  void on_stream_closed(Http2Stream& stream, Http2Code code) override;
  Http2Piece next_piece(Http2Stream& stream, std::size_t most) override;
  Http2Sent send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) override;
  void on_end_sent(Http2Stream& stream) override;

 private:
  // Each of these may call user code; the connection may be gone afterwards.
  void flush();
  void tell_streams();
  void fail(Http2Code code, std::error_code error);
  void lose(std::error_code error);
  void on_tick();
  void go();  // It is destroyed.

  void link(Http2Wire& wire);
  void unlink(Http2Wire& wire);
  void send_frames();
  template <class Is>
  Http2Wire* find(Is is);
  bool is_late(Nanos now) const;

  ServerCore& server_;
  Stream stream_;
  Http2Session* session_ = nullptr;     // Owned; by receive's caller once this is gone.
  std::unique_ptr<Address> forwarded_;  // Whom a proxy speaks for.
  Http2Wire* wires_ = nullptr;
  Http2Wire* incoming_ = nullptr;  // Whose head is being received.
  Http2Head head_;
  Nanos head_since_{0};
  std::uint64_t requests_ = 0;
  Http2Frames frames_;
  Http2Patience patience_;
  Timer flush_;
  Timer tick_;
  Lifetime lifetime_;
  bool is_in_session_ = false;
  bool is_busy_ = false;  // Whoever is will flush.
  bool is_unsent_ = false;
  bool has_news_ = false;
  bool is_flooded_ = false;
};

}  // namespace spate::http
