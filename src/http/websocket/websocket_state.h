// WebSocketState: the state behind a WebSocket. It is the handler of its Stream, and calls the
// WebSocketHandler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "base/list.h"
#include "http/codec/websocket_reader.h"
#include "spate/http/websocket.h"
#include "spate/net/stream.h"

namespace spate::http {

class ServerCore;
class Subscription;
class WebSocketCall;
class WebSocketConnecting;
class WebSocketGroup;
class LoopWebSockets;

// Why our side closed the connection.
enum class WebSocketFailure : std::uint8_t {
  none,
  protocol,
  text,
  too_long,
  memory,
  silence,
  exception,
};

class WebSocketState final : public StreamHandler, public Linked<WebSocketState> {
 public:
  // Makes a state with a handler and without a connection: a server's, or a client's if `host` is
  // nullptr. nullptr when memory runs out.
  static WebSocketState* make(Loop& loop, WebSocketHandler& handler,
                              const WebSocketOptions& options, ServerCore* host,
                              std::string_view route = {});
  static WebSocketState* of(const WebSocket& socket) { return socket.state_; }
  static WebSocket handle_of(WebSocketState* state) { return WebSocket(state); }
  // Called when the handle is destroyed.
  void abandon();

  WebSocketState(const WebSocketState&) = delete;
  WebSocketState& operator=(const WebSocketState&) = delete;

  LoopWebSockets& loop_state() const;
  WebSocketGroup& group() const { return *group_; }
  // Begins to send and receive frames. `protocol` is the number of one of the options' protocols,
  // from 1; 0 is none. `window` is the compressor's, in bits; 0: messages are not compressed. False
  // when memory runs out.
  bool open(Stream stream, std::size_t protocol, int window);
  // Before open(), for clients. False when memory runs out.
  bool connect_by(std::unique_ptr<WebSocketConnecting> connecting);
  std::unique_ptr<WebSocketConnecting> take_connecting();
  // Calls on_closed() of a client whose handshake failed.
  void report_not_connected(std::error_code error);
  void report_open() { handler_->on_open(); }
  // Called after an exception left the handler.
  void fail_by_exception();

  // ---- the functions of WebSocket

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
  // True if its frames are not masked.
  bool takes_shared() const { return is_writable() && !is_client_ && !is_in_parts_; }
  // Sends a complete frame that other sockets send, too.
  bool send_shared(const Buffer& frame);
  Subscription*& subscriptions();  // Needs has_extras().
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
  bool show(WebSocketCall& call, const WebSocketReader& reader, State state);
  void show_message(const WebSocketReader& reader);
  void on_ping(Bytes bytes);
  void on_close(const WebSocketReader& reader);
  void end_stream();
  void fail(WebSocketFailure why, CloseCode code);
  std::error_code reason_of(std::error_code error) const;
  void forget_all();

  // Called when the group has seen no input for `ping_after`.
  void on_silence();
  // Resets it, and makes the last call.
  void end(std::error_code error);

  bool has_room_for(std::size_t size) const;
  bool write_frame(Opcode opcode, Bytes payload, bool is_last, bool is_compressed = false);
  bool write_masked(FrameHead& head, Bytes payload);
  bool write_control(Opcode opcode, Bytes payload);
  bool write_close(CloseCode code, std::string_view reason);

  Stream stream_;
  WebSocketHandler* handler_;
  WebSocketGroup* group_;
  std::unique_ptr<Extras> extras_;  // Rarely needed state.
  std::uint32_t due_ = 0;                      // When the group checks it, in the group's ticks.
  CloseCode code_ : 13 = CloseCode::abnormal;  // Below 5,000.
  WebSocketFailure failure_ : 3 = WebSocketFailure::none;
  bool is_client_ : 1;
  bool was_active_ : 1 = false;  // Since the group's last check.
  bool has_pinged_ : 1 = false;
  bool has_sent_close_ : 1 = false;
  bool has_got_close_ : 1 = false;
  bool is_over_ : 1 = false;  // Further input is discarded.
  bool is_in_parts_ : 1 = false;
  std::uint8_t protocol_ : 4 = 0;
  std::uint8_t window_ : 4 = 0;
};
static_assert(sizeof(WebSocketState) <= 64, "the memory that a WebSocket adds to its Stream");

}  // namespace spate::http
