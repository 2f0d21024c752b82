// ClientHttp2: an HTTP/2 connection. Carries many calls concurrently, each as an Http2Call.
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

  // ---- called by its streams

  Http2Session& session() const { return *session_; }
  const HeadLimits& head_limits() const { return limits_; }
  // Schedules sending, unless it is about to happen anyway.
  void flush_later();
  // Called when the server has responded: calls lost from now on may have raced with its close.
  void note_response() { has_responded_ = true; }
  void count_request();
  // Accepts no more calls, and closes after the last one.
  void take_no_more();
  // Called when a call has reached its deadline. If nothing was received since it began, the
  // network may be down without notice.
  void note_late(const CallState& call);
  // Resets the stream of a call that ends before its response is complete. If nothing was received
  // for a second, sends a PING.
  void give_up(std::int32_t id);
  // Called when a call or a tunnel has ended.
  void note_free();
  // Called when a stream and its call have ended.
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
  // Calls may be waiting for the settings.
  void on_settings() override { has_news_ = true; }
  bool on_frame(Http2Frame kind) override;
  void on_violation(Broken broken) override;
  void on_stream_closed(Http2Stream& stream, Http2Code code) override;
  Http2Piece next_piece(Http2Stream& stream, std::size_t most) override;
  Http2Sent send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) override;
  void on_end_sent(Http2Stream& stream) override;

  // Returns how many bytes wait in the Stream.
  std::size_t queued() const { return stream_.queued(); }

 private:
  bool take_field(std::string_view name, std::string_view value);
  void take_head(Http2Call& call, Http2End end);
  bool show_upgrade(std::string_view protocol);
  // Each of these may call user code, and remove the connection from the pool.
  void flush();
  void report_closed_streams();
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
  ResponseHead head_;  // The one being received.
  Http2Text text_;
  Http2Frames frames_;
  Http2Patience patience_;
  Timer flush_;
  std::uint64_t heard_;  // Sequence number at the last input: see ClientCore::tickets().
  Nanos heard_at_;
  Nanos asked_at_{0};             // When the last PING was sent. Not after heard_at_ once it was
                                  // acknowledged.
  std::size_t calls_ = 0;         // Tunnels included.
  std::uint32_t most_calls_ = 0;  // The limit when it was last checked.
  bool is_in_session_ = false;
  bool is_receiving_ = false;
  bool is_busy_ = false;  // The code that set it will flush.
  bool is_unsent_ = false;
  bool has_news_ = false;
  bool is_too_long_ = false;  // The header section.
  bool has_carried_ = false;
  bool has_responded_ = false;
  bool is_last_ = false;  // It takes no more calls.
  bool is_flooded_ = false;
  bool is_violated_ = false;
};

}  // namespace spate::http
