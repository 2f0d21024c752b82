// Http2Call: one stream of a connection of HTTP/2, and the call that it carries, or the tunnel that
// has come of it. It lives as long as either: a stream whose call has gone is still to be closed,
// and what was received in whole is still read when the connection has gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "http/client/call_state.h"
#include "http/client/carrier.h"
#include "http/client/ref.h"
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

  // Whether the connection had answered a call before.
  enum class Use : bool { first, again };
  // Sends the request, an upgrade's once the server's settings have come. False when memory runs
  // out, or if there are no streams any more; then the call is as it was.
  bool begin(CallState& call, Use use);

  // ---- what comes in; each may call user code. The connection may be out of the pool afterwards.

  bool has_head() const { return has(kHasHead); }
  void take_head(ResponseHead& head, Http2End end);
  bool asks_upgrade() const { return call_ && call_->asks_upgrade(); }
  std::string_view upgrade() const { return call_->upgrade(); }
  // The server has agreed to that, which is shown as 101.
  void take_upgrade(ResponseHead& head, Http2End end);
  void take_trailer(std::string_view name, std::string_view value);
  // Those, or a head, are longer than they may be, or have too many fields.
  void refuse();
  void take_body(Bytes bytes);
  void take_end();

  // ---- what goes out, in the session; nobody is called

  Http2Piece next_piece(std::size_t most);
  void take(std::span<std::byte> target);
  // False when memory runs out.
  bool take(std::size_t size, Buffer& target);
  void on_end_sent();
  enum class By : bool { server, us };
  void on_stream_closed(Http2Code code, By by);

  // ---- how it ends

  // The stream has closed, which is to be told; or what it has waited for has come.
  bool has_news() const;
  void tell();
  // The connection goes. What was received in whole stays; a tunnel goes with this.
  void leave_connection() { connection_ = nullptr; }
  // Then: the call may have been lost with it.
  bool is_lost() const { return call_ && !has(kEnded); }
  bool may_repeat() const { return has(kIsReused) && !has(kHeard) && call_->may_repeat(); }
  void repeat();
  void lose(std::error_code error);

  // ---- Carrier

  void send_body() override;
  bool is_full() const override { return has(kIsFull); }
  void pause() override {}  // What comes is kept, and not credited.
  void resume() override {}
  bool has_kept() const override { return !in_.empty() || has(kEnded); }
  void show_more() override;
  void note_late() override;
  void abandon() override;

 private:
  enum Flag : std::uint16_t {
    kIsReused = 1 << 0,         // The connection.
    kHeard = 1 << 1,            // Something of an answer has come.
    kHasHead = 1 << 2,          // All of it, and not of 1xx.
    kEnded = 1 << 3,            // All of the answer has come.
    kEndSent = 1 << 4,          // All of the request has been sent.
    kShowing = 1 << 5,          // What was kept: what comes meanwhile is behind it.
    kIsFull = 1 << 6,           //
    kIsAwaited = 1 << 7,        // The session has found nothing to send.
    kIsClosed = 1 << 8,         // The stream is,
    kIsTold = 1 << 9,           // which was told.
    kIsRefused = 1 << 10,       // The server has not looked at the request.
    kAwaitsSettings = 1 << 11,  // Nothing has been sent yet.
    kIsCut = 1 << 12            // A tunnel is, by us.
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
  Ref<CallState> call_;  // While it has one, it is referred to itself.
  Buffer in_;            // Of the body, for a call that has paused.
  std::unique_ptr<Http2Fields> trailers_;
  std::unique_ptr<Http2Tunnel> tunnel_;
  std::error_code error_;  // Why the stream has closed.
  Http2TrailerSection section_;
  std::int32_t id_ = 0;
  std::uint16_t flags_ = 0;
};

}  // namespace spate::http
