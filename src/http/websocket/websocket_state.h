// WebSocketState: what a WebSocket is the handle of. It hears the Stream, and its handler hears it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "http/codec/websocket_reader.h"
#include "spate/http/websocket.h"
#include "spate/net/stream.h"

namespace spate::http {

class ServerCore;
class Subscription;
class WebSocketConnecting;
class WebSocketGroup;
class WebSocketHub;

// Why our side has given up.
enum class WebSocketFailure : std::uint8_t {
  none,
  protocol,
  text,
  too_long,
  memory,
  silence,
};

class WebSocketState final : public StreamHandler {
 public:
  // With a place to be told, and no connection yet: a server's, or a client if `host` is nullptr.
  // nullptr when memory runs out.
  static WebSocketState* make(Loop& loop, WebSocketHandler& handler,
                              const WebSocketOptions& options, ServerCore* host);
  static WebSocketState* of(const WebSocket& socket) { return socket.state_; }
  static WebSocket handle_of(WebSocketState* state) { return WebSocket(state); }
  // The handle is being destroyed.
  void abandon();

  WebSocketState(const WebSocketState&) = delete;
  WebSocketState& operator=(const WebSocketState&) = delete;

  WebSocketHub& hub() const;
  // From here on, frames. `protocol` is the number of one of the options', from 1; 0 is none.
  // False when memory runs out.
  bool open(Stream stream, std::size_t protocol, bool may_compress);
  // Until then, a client's. False when memory runs out.
  bool connect_by(std::unique_ptr<WebSocketConnecting> connecting);
  std::unique_ptr<WebSocketConnecting> take_connecting();
  // The last call: of a client that has not been given what it asked for.
  void tell_not_connected(std::error_code error);
  void tell_open() { handler_->on_open(); }

  // ---- what WebSocket's functions of the same name do

  bool is_open() const;
  bool is_writable() const;
  std::string_view protocol() const;
  bool send(MessageKind kind, Bytes bytes);
  bool send(MessageKind kind, Buffer&& buffer);
  bool send_part(MessageKind kind, Bytes bytes, bool is_last);
  bool ping(Bytes bytes);
  std::size_t queued() const { return stream_.queued(); }
  bool is_full() const { return stream_.is_full(); }
  void pause() { stream_.pause(); }
  void resume() { stream_.resume(); }
  void close(CloseCode code, std::string_view reason);
  void abort();
  const Stream& stream() const { return stream_; }
  Loop& loop() const;

  // ---- for Topic

  const WebSocketOptions& options() const;
  // What is sent to it has no mask.
  bool takes_shared() const { return is_writable() && !is_client_ && !is_in_parts_; }
  // A frame that others are sent, too, whole.
  bool send_shared(const Buffer& frame);
  Subscription*& subscriptions();  // Of one that has_extras().
  Subscription* first_subscription() const;
  bool has_extras();  // False when memory runs out.

 private:
  friend class WebSocketGroup;
  struct Extras;
  struct ControlText;
  using State = WebSocketReader::State;

  WebSocketState(WebSocketGroup& group, WebSocketHandler& handler, WebSocketRole role);
  ~WebSocketState();

  std::size_t on_data(Bytes bytes) override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  WebSocketReader take_reader();
  bool keep(WebSocketReader&& reader);
  bool may_show() const;
  bool show(const WebSocketReader& reader, State state);
  void show_message(const WebSocketReader& reader);
  void on_ping(Bytes bytes);
  void on_close(const WebSocketReader& reader);
  void end_stream();
  void fail(WebSocketFailure why, CloseCode code);
  std::error_code reason_of(std::error_code error) const;
  void forget_all();

  // The group has heard nothing of it.
  void on_silence();
  // Resets it; the last call.
  void end(std::error_code error);

  bool has_room_for(std::size_t size) const;
  bool write_frame(Opcode opcode, Bytes payload, bool is_last, bool is_compressed = false);
  bool write_masked(FrameHead& head, Bytes payload);
  bool write_control(Opcode opcode, Bytes payload);
  bool write_close(CloseCode code, std::string_view reason);

  Stream stream_;
  WebSocketHandler* handler_;
  WebSocketGroup* group_;
  std::unique_ptr<Extras> extras_;  // What few have.
  WebSocketState* next_ = nullptr;  // In the group.
  WebSocketState* previous_ = nullptr;
  std::uint32_t due_ = 0;  // When the group looks at it, in its ticks.
  CloseCode code_ = CloseCode::abnormal;
  WebSocketFailure failure_ : 3 = WebSocketFailure::none;
  bool is_client_ : 1;
  bool is_compressing_ : 1 = false;
  bool is_watched_ : 1 = false;
  bool has_heard_ : 1 = false;  // Since the group has looked at it.
  bool has_pinged_ : 1 = false;
  bool has_sent_close_ : 1 = false;
  bool has_got_close_ : 1 = false;
  bool is_over_ : 1 = false;  // What comes is thrown away.
  bool is_in_parts_ : 1 = false;
  std::uint8_t protocol_ : 4 = 0;
};
static_assert(sizeof(WebSocketState) <= 64, "what one costs beside its Stream");

}  // namespace spate::http
