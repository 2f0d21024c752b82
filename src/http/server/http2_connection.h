// Http2Connection: one HTTP/2 connection of a server. Passes input to the session, and the
// session's output to the Stream. Its streams are Http2Wires.
//
// User code is called while the session processes input, and outside of the session; never while it
// produces output. A stream that closes inside the session is reported afterwards
// (report_closed_streams()).
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
  Http2Connection(ServerCore& server, Stream stream, std::unique_ptr<Address> peer);
  ~Http2Connection() override;

  // May destroy the connection.
  void start();

  // ---- ServerConnection

  void on_drain() override;
  void close_if_idle() override;
  void close_to_requests() override;
  void abort(std::error_code error) override;

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override { flush(); }
  void on_closed(std::error_code error) override;

  // ---- called by its streams

  ServerCore& server() const { return server_; }
  Lifetime& lifetime() { return lifetime_; }
  Http2Session& session() const { return *session_; }
  Address peer() const;
  bool is_local() const { return is_local_; }
  std::optional<TlsInfo> tls() const { return tls_info(stream_); }
  // Schedules sending, unless it is about to happen anyway.
  void flush_later();
  Loop& loop() const { return stream_.loop(); }
  // Called when a stream has an event to report.
  void note_news() { has_news_ = true; }
  void settle(Http2Wire& wire, ExchangeState& state);
  Outbox::Total& queued() { return queued_; }
  bool has_client_ended() const { return has_client_ended_; }
  // Removes a stream from the list of held requests.
  void forget_held(Http2Wire& wire);

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
  // Each of these may call user code, which may destroy the connection.
  void flush();
  void report_closed_streams();
  void start_held();
  void fail(Http2Code code, std::error_code error);
  void lose(std::error_code error);
  void on_tick();
  void go();  // Destroys this.

  bool is_overfull() const;
  bool may_start_held() const { return held_ != nullptr && !is_overfull(); }
  void hold(Http2Wire& wire, Http2End end);
  void link(Http2Wire& wire);
  void unlink(Http2Wire& wire);
  void send_frames();
  template <class Is>
  Http2Wire* find(Is is);
  bool is_late(Nanos now) const;

  ServerCore& server_;
  Stream stream_;
  Http2Session* session_ = nullptr;     // Owned; by the caller of receive() once this is destroyed.
  // Set if a proxy named it, for the log, or by peer(): asking the kernel is a system call.
  mutable std::unique_ptr<Address> peer_;
  Outbox::Total queued_;  // Must outlive the streams.
  List<Http2Wire> wires_;
  Http2Wire* held_ = nullptr;  // The oldest stream whose request was not started yet.
  Http2Wire* last_held_ = nullptr;
  Http2Wire* incoming_ = nullptr;  // Is receiving its header section.
  Http2Head head_;
  Nanos head_since_{0};
  std::uint64_t requests_ = 0;
  Http2Frames frames_;
  Http2Patience patience_;
  Timer flush_;
  Timer tick_;
  Lifetime lifetime_;
  bool is_in_session_ = false;
  bool is_busy_ = false;  // The code that set it will flush.
  bool is_unsent_ = false;
  bool has_news_ = false;
  bool is_flooded_ = false;
  bool refuses_streams_ = false;
  bool has_client_ended_ = false;
  bool is_local_ = false;
};

}  // namespace spate::http
