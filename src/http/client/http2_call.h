// Http2Call: one stream of an HTTP/2 connection, with the call that it carries, or the tunnel of an
// upgrade. It outlives either: a stream without a call must still be closed, and a response that
// was received completely can be read after the connection is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "base/ref.h"
#include "http/client/call_state.h"
#include "http/client/carrier.h"
#include "http/codec/head.h"
#include "http/codec/http2_fields.h"
#include "http/codec/http2_session.h"
#include "http/codec/http2_trailers.h"
#include "http/tunnel/http2_tunnel.h"
#include "spate/net/buffer.h"

namespace spate::http {

class ClientHttp2;

class Http2Call final : public Carrier, public Http2Stream, public Counted, Http2Tunnel::Way {
 public:
  explicit Http2Call(ClientHttp2& connection) : connection_(&connection) {}

  // Whether the connection had carried a response before.
  enum class Use : bool { first, again };
  // Sends the request; for an upgrade only after the server's settings. False when memory runs out,
  // or if there are no more stream ids; the call is then unchanged.
  bool begin(CallState& call, Use use);

  // ---- input; each function may call user code, and remove the connection from the pool

  bool has_head() const { return has(kHasHead); }
  void take_head(ResponseHead& head, Http2End end);
  bool asks_upgrade() const { return call_ && call_->asks_upgrade(); }
  std::string_view upgrade() const { return call_->upgrade(); }
  // Called when the server has accepted the upgrade, which is presented as 101.
  void take_upgrade(ResponseHead& head, Http2End end);
  void take_trailer(std::string_view name, std::string_view value);
  // Called when the header section or the trailers exceed a limit.
  void refuse();
  void take_body(Bytes bytes);
  void take_end();

  // ---- output, called by the session; they call no user code

  Http2Piece next_piece(std::size_t most);
  void take(std::span<std::byte> target);
  // False when memory runs out.
  bool take(std::size_t size, Buffer& target);
  void on_end_sent();
  enum class By : bool { server, us };
  void on_stream_closed(Http2Code code, By by);

  // ---- the end

  // True if the stream has closed and this was not reported, or an awaited event has occurred.
  bool has_news() const;
  void tell();
  // Called when the connection is lost. A complete response stays readable; a tunnel ends with
  // this.
  void leave_connection() { connection_ = nullptr; }
  // Returns whether the response was incomplete. Valid after that.
  bool is_lost() const { return call_ && !has(kEnded); }
  bool may_repeat() const { return has(kIsReused) && !has(kHasReceived) && call_->may_repeat(); }
  void repeat();
  void lose(std::error_code error);

  // ---- Carrier

  void send_body() override;
  bool is_full() const override { return has(kIsFull); }
  std::size_t queued() const override;
  void pause() override {}  // Input is kept, and its window is not updated.
  void resume() override {}
  bool has_kept() const override { return !in_.empty() || has(kEnded); }
  void show_more() override;
  void note_late() override;
  void abandon() override;

 private:
  enum Flag : std::uint16_t {
    kIsReused = 1 << 0,         // The connection had carried a response before.
    kHasReceived = 1 << 1,      // A byte of the response was received.
    kHasHead = 1 << 2,          // The final header section, not that of a 1xx.
    kEnded = 1 << 3,            // The response is complete.
    kEndSent = 1 << 4,          // The request was sent completely.
    kShowing = 1 << 5,          // Kept bytes are being passed on: new ones must be appended after
                                // them.
    kIsFull = 1 << 6,           //
    kIsAwaited = 1 << 7,        // The session found nothing to send, and must be resumed.
    kIsClosed = 1 << 8,         // The stream has closed,
    kIsReported = 1 << 9,       // and this was reported.
    kIsRefused = 1 << 10,       // The server did not process the request.
    kAwaitsSettings = 1 << 11,  // Nothing was sent yet.
    kIsCut = 1 << 12            // A tunnel was reset by the client.
  };
  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint16_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint16_t>(flags_ & ~flags); }

  // ---- Http2Tunnel::Way

  void send_tunneled() override { wake(); }
  void credit(std::size_t size) override;
  void cut_tunnel() override;

  bool ask(CallState& call);
  void ask_for_upgrade(CallState& call);
  void wake();
  Result<Stream> open_tunnel(CallState& call);
  void close_tunnel();
  bool carries(const CallState& call) const { return call_.get() == &call; }
  static bool is_within_length(CallState& call, std::size_t size);
  std::size_t show(CallState& call, Bytes bytes);
  void show_kept(CallState& call);
  void go_on(CallState& call);
  void finish(CallState& call);
  void fail(CallState& call, std::error_code error);
  Ref<CallState> let_call_go();
  void on_piece_sent();
  void give_up(std::error_code error);

  ClientHttp2* connection_;
  Ref<CallState> call_;  // While set, it holds a reference to this.
  Buffer in_;            // Bytes of the body that arrived during a pause.
  std::unique_ptr<Http2Fields> trailers_;
  std::unique_ptr<Http2Tunnel> tunnel_;
  std::error_code error_;  // Why the stream closed.
  Http2TrailerSection section_;
  std::int32_t id_ = 0;
  std::uint16_t flags_ = 0;
};

}  // namespace spate::http
