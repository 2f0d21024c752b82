// ClientHttp2: a connection of HTTP/2: carries calls, many at the same time, each as an Http2Call.
//
// User code is called while the session takes bytes in, and while nothing of it runs; never while
// it makes bytes. What closes inside the session is told behind it (tell_streams()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "http/client/client_connection.h"
#include "http/client/http2_call.h"
#include "http/codec/head.h"
#include "http/codec/http2_frames.h"
#include "http/codec/http2_patience.h"
#include "http/codec/http2_session.h"
#include "http/codec/http2_text.h"
#include "spate/timer.h"

namespace spate::http {

class ClientHttp2 final : public ClientConnection, public Http2Events {
 public:
  ClientHttp2(Origin& origin, Stream stream);
  ~ClientHttp2() override;

  // ---- ClientConnection

  bool start() override;
  bool carry(CallState& call) override;
  bool has_room() const override;
  bool has_calls() const override { return calls_ > 0; }
  void leave(Ending ending) override;

  // ---- what its streams use

  Http2Session& session() const { return *session_; }
  const HeadLimits& head_limits() const { return limits_; }
  // Something is to be sent: soon, unless that is about to happen anyway.
  void flush_later();
  // The server has answered on it: calls that it loses from now on may have come too late.
  void note_answer() { has_answered_ = true; }
  void count_request();
  // It takes no other call, and goes with the last that it has.
  void take_no_more();
  // A call has taken too long. If nothing was received since it began, the network may have gone
  // without a word.
  void note_late(const CallState& call);
  // The stream of a call that goes before its answer has come whole. If nothing was received for a
  // second, the server is asked whether it is there.
  void give_up(std::int32_t id);
  // A call has gone, or a tunnel.
  void note_free();
  // A stream has gone, and its call.
  void forget(Http2Call& stream);

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override { flush(); }
  void on_closed(std::error_code error) override;

  // ---- Http2Events

  bool on_field(Http2Stream& stream, std::string_view name, std::string_view value) override;
  bool on_head(Http2Stream& stream, Http2End end) override;
  bool on_body(Http2Stream& stream, Bytes bytes) override;
  bool on_body_end(Http2Stream& stream) override;
  void on_last_stream() override { is_last_ = true; }
  // There may be calls that wait for them.
  void on_settings() override { has_news_ = true; }
  bool on_frame(Http2Frame kind) override;
  void on_violation(Broken broken) override;
  void on_stream_closed(Http2Stream& stream, Http2Code code) override;
  Http2Piece next_piece(Http2Stream& stream, std::size_t most) override;
  Http2Sent send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) override;
  void on_end_sent(Http2Stream& stream) override;

 private:
  bool take_field(std::string_view name, std::string_view value);
  void take_head(Http2Call& call, Http2End end);
  bool show_upgrade(std::string_view protocol);
  // Each of these may call user code. The connection is out of the pool afterwards, or not.
  void flush();
  void tell_streams();
  void fail(Http2Code code, std::error_code error);
  void lose(Ending ending, std::error_code error);
  void note_heard();
  void note_settings();

  void send_frames();
  Nanos now() const;
  bool is_asking() const { return asked_at_ > heard_at_; }

  const HeadLimits limits_;
  std::vector<Ref<Http2Call>> streams_;
  std::unique_ptr<Http2Session> session_;
  ResponseHead head_;  // That is being received.
  Http2Text text_;
  Http2Frames frames_;
  Http2Patience patience_;
  Timer flush_;
  std::uint64_t heard_;  // When: see ClientCore::tickets().
  Nanos heard_at_;
  Nanos asked_at_{0};             // Whether it is there. Behind heard_at_ until it says anything.
  std::size_t calls_ = 0;         // With tunnels.
  std::uint32_t most_calls_ = 0;  // When it was last looked at.
  bool is_in_session_ = false;
  bool is_receiving_ = false;
  bool is_busy_ = false;  // Whoever is will flush.
  bool is_unsent_ = false;
  bool has_news_ = false;
  bool is_too_long_ = false;  // The head.
  bool has_carried_ = false;
  bool has_answered_ = false;
  bool is_last_ = false;  // It takes no call any more.
  bool is_flooded_ = false;
  bool is_violated_ = false;
};

}  // namespace spate::http
