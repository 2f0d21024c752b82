// The input of a WebSocket, and its end.
#include "http/websocket/websocket_state.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/websocket/loop_websockets.h"
#include "http/websocket/subscription.h"
#include "http/websocket/websocket_extras.h"
#include "http/websocket/websocket_group.h"
#include "spate/error.h"
#include "spate/http/error.h"
#include "spate/net/stream_use.h"

namespace spate::http {

namespace {

WebSocketFailure failure_of(CloseCode code) {
  switch (code) {
    case CloseCode::invalid_text:
      return WebSocketFailure::text;
    case CloseCode::message_too_big:
      return WebSocketFailure::too_long;
    case CloseCode::internal_error:
      return WebSocketFailure::memory;
    default:
      return WebSocketFailure::protocol;
  }
}

}  // namespace

WebSocketState* WebSocketState::make(Loop& loop, WebSocketHandler& handler,
                                     const WebSocketOptions& options, ServerCore* host,
                                     std::string_view route) {
  LoopWebSockets* loop_state = LoopWebSockets::of(loop);
  WebSocketGroup* group =
      loop_state == nullptr ? nullptr : loop_state->join_group(options, host, route);
  if (group == nullptr) return nullptr;
  void* memory = loop_state->slab().take();
  if (memory == nullptr) return loop_state->leave_group(*group), nullptr;
  const WebSocketRole role = host == nullptr ? WebSocketRole::client : WebSocketRole::server;
  return new (memory) WebSocketState(*group, handler, role);
}

WebSocketState::WebSocketState(WebSocketGroup& group, WebSocketHandler& handler, WebSocketRole role)
    : handler_(&handler), group_(&group), is_client_(role == WebSocketRole::client) {}

WebSocketState::~WebSocketState() { forget_all(); }

LoopWebSockets& WebSocketState::loop_state() const { return group_->loop_state(); }
Loop& WebSocketState::loop() const { return loop_state().loop(); }
const WebSocketOptions& WebSocketState::options() const { return group_->options(); }

// Sends the queue and a close frame.
void WebSocketState::abandon() {
  if (is_writable()) write_close(CloseCode::going_away, {});
  LoopWebSockets& loop_state = this->loop_state();
  WebSocketGroup& group = *group_;
  loop_state.forget(*this, group);
  this->~WebSocketState();
  loop_state.slab().give_back(this);
  loop_state.leave_group(group);
}

void WebSocketState::forget_all() {
  group_->unwatch(*this);
  if (extras_ == nullptr) return;
  while (extras_->subscriptions != nullptr) delete extras_->subscriptions;
  extras_.reset();
}

bool WebSocketState::has_extras() {
  if (extras_ == nullptr) extras_.reset(new (std::nothrow) Extras);
  return extras_ != nullptr;
}

Subscription*& WebSocketState::subscriptions() { return extras_->subscriptions; }
Subscription* WebSocketState::first_subscription() const {
  return extras_ == nullptr ? nullptr : extras_->subscriptions;
}

bool WebSocketState::is_open() const {
  const bool is_connecting = extras_ != nullptr && extras_->connecting != nullptr;
  return stream_.is_open() || (is_connecting && extras_->connecting->is_open());
}

bool WebSocketState::is_writable() const {
  return !has_sent_close_ && !is_over_ && stream_.is_writable();
}

std::string_view WebSocketState::protocol() const {
  return protocol_ == 0 ? std::string_view() : options().protocols[protocol_ - 1u];
}

// With WhenFull::drop, has_room_for() drops messages. The Stream gets extra room, because control
// frames are never dropped.
bool WebSocketState::open(Stream stream, std::size_t protocol, int window) {
  stream_ = std::move(stream);
  set_use(stream_, StreamUse::websocket);
  protocol_ = protocol & 0xf;
  window_ = static_cast<std::uint8_t>(window & 0xf);
  StreamOptions stream_options{.limits = options().limits};
  if (stream_options.limits.when_full == WhenFull::drop) {
    constexpr std::size_t kRoomForControl = 1024;
    stream_options.limits.max += std::min(kRoomForControl, SIZE_MAX - stream_options.limits.max);
    stream_options.limits.when_full = WhenFull::close;
  }
  if (!stream_.start(*this, stream_options) && group_->watch(*this)) return true;
  stream_.abort();
  return false;
}

bool WebSocketState::connect_by(std::unique_ptr<WebSocketConnecting> connecting) {
  if (!has_extras()) return false;
  extras_->connecting = std::move(connecting);
  return true;
}

std::unique_ptr<WebSocketConnecting> WebSocketState::take_connecting() {
  return std::move(extras_->connecting);
}

void WebSocketState::report_not_connected(std::error_code error) {
  forget_all();
  handler_->on_closed(CloseCode::abnormal, {}, error);
}

// ---- input

// Moves the reader to the stack: the bytes passed to the handler stay valid, even if it destroys
// this.
WebSocketReader WebSocketState::take_reader() {
  if (extras_ == nullptr || extras_->reader == nullptr) return {};
  const std::unique_ptr<WebSocketReader> reader = std::move(extras_->reader);
  return std::move(*reader);
}

bool WebSocketState::keep(WebSocketReader&& reader) {
  if (!has_extras()) return false;
  extras_->reader.reset(new (std::nothrow) WebSocketReader(std::move(reader)));
  return extras_->reader != nullptr;
}

bool WebSocketState::may_show() const {
  if (is_over_ || stream_.is_paused()) return false;
  return !options().limits.pause_reading || !stream_.is_full();
}

std::size_t WebSocketState::on_data(Bytes bytes) {
  was_active_ = true;
  if (is_over_) return bytes.size();
  const std::size_t size = bytes.size();
  LoopWebSockets& loop_state = this->loop_state();
  const auto room = loop_state.lend_room();
  if (!room) return fail(WebSocketFailure::memory, CloseCode::internal_error), size;
  WebSocketCall call(loop_state, *this);
  const WebSocketRules rules = {
      .role = is_client_ ? WebSocketRole::client : WebSocketRole::server,
      .view = options().view,
      .takes_compressed = window_ != 0,
      .max_message = options().max_message,
  };
  WebSocketReader reader = take_reader();
  while (!bytes.empty() && may_show()) {
    const State state = reader.next(bytes, rules, {room->bytes, room->inflater});
    if (state == State::unfinished) break;
    if (!show(call, reader, state) || call.is_gone()) return size;
  }
  if (!reader.is_at_rest() && !is_over_ && !keep(std::move(reader)))
    fail(WebSocketFailure::memory, CloseCode::internal_error);
  return is_over_ ? size : size - bytes.size();
}

// May destroy this. False if nothing is read any more.
bool WebSocketState::show(WebSocketCall& call, const WebSocketReader& reader, State state) {
  switch (state) {
    case State::message:
      call.guard([&] { show_message(reader); });
      return true;
    case State::ping:
      on_ping(reader.payload());
      return true;
    case State::pong:
      if (!has_sent_close_) call.guard([&] { handler_->on_pong(reader.payload()); });
      return true;
    case State::close:
      on_close(reader);
      return false;
    default:
      fail(failure_of(reader.code()), reader.code());
      return false;
  }
}

void WebSocketState::show_message(const WebSocketReader& reader) {
  if (has_sent_close_) return;
  if (options().view == MessageView::parts) {
    handler_->on_part(reader.kind(), reader.payload(), reader.is_last());
  } else {
    handler_->on_message(reader.kind(), reader.payload());
  }
}

// Only the last ping needs a pong (RFC 6455 §5.5.3), so a peer that does not read gets no queue of
// them.
void WebSocketState::on_ping(Bytes bytes) {
  if (has_sent_close_) return;
  if (!is_full() && write_control(Opcode::pong, bytes)) return;
  if (!has_extras()) return;
  if (extras_->pong == nullptr) extras_->pong.reset(new (std::nothrow) ControlText);
  if (extras_->pong != nullptr) extras_->pong->set(bytes);
}

void WebSocketState::on_drained() {
  if (extras_ != nullptr && extras_->pong != nullptr) {
    const std::unique_ptr<ControlText> pong = std::move(extras_->pong);
    if (is_writable()) write_control(Opcode::pong, pong->bytes());
  }
  if (has_sent_close_) return;
  WebSocketCall call(loop_state(), *this);
  call.guard([this] { handler_->on_drained(); });
}

// The reason is lost if there is no memory for it.
void WebSocketState::on_close(const WebSocketReader& reader) {
  has_got_close_ = is_over_ = true;
  code_ = reader.code();
  if (!reader.payload().empty() && has_extras()) {
    extras_->reason.reset(new (std::nothrow) ControlText);
    if (extras_->reason != nullptr) extras_->reason->set(reader.payload());
  }
  if (!has_sent_close_) write_close(code_, {});
  end_stream();
}

// Both sides have sent a close frame. The server closes the connection, having read everything; the
// client waits for that (RFC 6455 §7.1.1).
void WebSocketState::end_stream() {
  stream_.set_deadline(options().close_timeout);
  if (!is_client_) stream_.close(Linger::no);
}

// Sends the code before the connection is closed.
void WebSocketState::fail(WebSocketFailure why, CloseCode code) {
  failure_ = why;
  is_over_ = true;
  if (!has_sent_close_) write_close(code, {});
  stream_.set_deadline(options().close_timeout);
  stream_.close();
}

// After our close frame, no function except on_closed() is called.
void WebSocketState::fail_by_exception() {
  if (!is_over_ && !has_sent_close_) fail(WebSocketFailure::exception, CloseCode::internal_error);
}

// A peer that reads nothing is detected by the full queue, and a paused socket receives no pongs:
// neither is pinged.
void WebSocketState::on_silence() {
  const bool was_pinged = has_pinged_;
  const bool was_active = was_active_;
  has_pinged_ = was_active_ = false;
  if (was_active || has_sent_close_ || is_over_ || !stream_.is_open()) return;
  if (is_full()) stream_.set_write_timeout(options().ping_after);
  if (is_full() || stream_.is_paused()) return;
  if (!was_pinged) {
    has_pinged_ = true;
    write_control(Opcode::ping, {});
    return;
  }
  failure_ = WebSocketFailure::silence;
  stream_.set_deadline(Nanos{-1});
}

// ---- the end

// Without room for a close frame it closes without one, and so it does if the Stream has failed.
void WebSocketState::close(CloseCode code, std::string_view reason) {
  if (extras_ != nullptr && extras_->connecting != nullptr) return extras_->connecting->cancel();
  if (has_sent_close_ || is_over_) return;
  is_over_ = !write_close(code, reason);
  stream_.set_deadline(options().close_timeout);
  is_over_ ? stream_.close() : stream_.resume();
}

void WebSocketState::abort() {
  is_over_ = true;
  forget_all();
  stream_.abort();
}

void WebSocketState::end(std::error_code error) {
  is_over_ = true;
  stream_.abort();
  on_closed(error);
}

std::error_code WebSocketState::reason_of(std::error_code error) const {
  if (has_got_close_) return {};
  switch (failure_) {
    case WebSocketFailure::protocol:
      return system_error(EPROTO);
    case WebSocketFailure::text:
      return system_error(EILSEQ);
    case WebSocketFailure::too_long:
      return system_error(EMSGSIZE);
    case WebSocketFailure::memory:
      return system_error(ENOMEM);
    case WebSocketFailure::silence:
      return Error::idle_timeout;
    case WebSocketFailure::exception:
      return HttpError::exception;
    case WebSocketFailure::none:
      break;
  }
  return error ? error : system_error(ECONNRESET);
}

void WebSocketState::on_closed(std::error_code error) {
  std::unique_ptr<ControlText> reason;
  if (extras_ != nullptr) reason = std::move(extras_->reason);
  forget_all();
  const Bytes said = reason == nullptr ? Bytes() : reason->bytes();
  WebSocketCall call(loop_state(), *this);
  call.guard([&] { handler_->on_closed(code_, text_of(said), reason_of(error)); });
}

}  // namespace spate::http
