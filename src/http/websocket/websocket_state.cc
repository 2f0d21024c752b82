// What a WebSocket is told, and how it ends.
#include "http/websocket/websocket_state.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/websocket/subscription.h"
#include "http/websocket/websocket_extras.h"
#include "http/websocket/websocket_group.h"
#include "http/websocket/websocket_hub.h"
#include "spate/error.h"

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
                                     const WebSocketOptions& options, ServerCore* host) {
  WebSocketHub* hub = WebSocketHub::of(loop);
  WebSocketGroup* group = hub == nullptr ? nullptr : hub->join_group(options, host);
  if (group == nullptr) return nullptr;
  void* memory = hub->slab().take();
  if (memory == nullptr) return hub->leave_group(*group), nullptr;
  const WebSocketRole role = host == nullptr ? WebSocketRole::client : WebSocketRole::server;
  return new (memory) WebSocketState(*group, handler, role);
}

WebSocketState::WebSocketState(WebSocketGroup& group, WebSocketHandler& handler, WebSocketRole role)
    : handler_(&handler), group_(&group), is_client_(role == WebSocketRole::client) {}

WebSocketState::~WebSocketState() { forget_all(); }

WebSocketHub& WebSocketState::hub() const { return group_->hub(); }
Loop& WebSocketState::loop() const { return hub().loop(); }
const WebSocketOptions& WebSocketState::options() const { return group_->options(); }

// What has been written is still sent, and the goodbye behind it.
void WebSocketState::abandon() {
  if (is_writable()) write_close(CloseCode::going_away, {});
  WebSocketHub& hub = this->hub();
  WebSocketGroup& group = *group_;
  hub.forget(*this);
  this->~WebSocketState();
  hub.slab().give_back(this);
  hub.leave_group(group);
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

// With WhenFull::drop, what is dropped is decided here, as control frames are not.
bool WebSocketState::open(Stream stream, std::size_t protocol, bool may_compress) {
  stream_ = std::move(stream);
  protocol_ = protocol & 0xf;
  is_compressing_ = may_compress;
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

void WebSocketState::tell_not_connected(std::error_code error) {
  forget_all();
  handler_->on_closed(CloseCode::abnormal, {}, error);
}

// ---- what comes

// One that has begun stays for as long as what it shows is looked at, whatever becomes of this.
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
  has_heard_ = true;
  if (is_over_) return bytes.size();
  const std::size_t size = bytes.size();
  WebSocketHub& hub = this->hub();
  const auto room = hub.lend_room();
  if (!room) return fail(WebSocketFailure::memory, CloseCode::internal_error), size;
  const WebSocketCall call(hub, *this);
  const WebSocketRules rules = {
      .role = is_client_ ? WebSocketRole::client : WebSocketRole::server,
      .view = options().view,
      .takes_compressed = is_compressing_,
      .max_message = options().max_message,
  };
  WebSocketReader reader = take_reader();
  while (!bytes.empty() && may_show()) {
    const State state = reader.next(bytes, rules, {room->bytes, room->inflater});
    if (state == State::unfinished) break;
    if (!show(reader, state) || call.is_gone()) return size;
  }
  if (!reader.is_at_rest() && !is_over_ && !keep(std::move(reader)))
    fail(WebSocketFailure::memory, CloseCode::internal_error);
  return is_over_ ? size : size - bytes.size();
}

// May destroy this. False if nothing is read any more.
bool WebSocketState::show(const WebSocketReader& reader, State state) {
  switch (state) {
    case State::message:
      show_message(reader);
      return true;
    case State::ping:
      on_ping(reader.payload());
      return true;
    case State::pong:
      if (!has_sent_close_) handler_->on_pong(reader.payload());
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
    handler_->on_part(reader.payload(), reader.kind(), reader.is_last());
  } else {
    handler_->on_message(reader.payload(), reader.kind());
  }
}

// Only the last need be answered (RFC 6455 §5.5.3): one that does not read gets no queue of them.
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
  if (!has_sent_close_) handler_->on_drained();
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

// Both have said goodbye. The server ends the connection, and has read all there is; the client
// waits for it (RFC 6455 §7.1.1).
void WebSocketState::end_stream() {
  stream_.set_deadline(options().close_timeout);
  if (!is_client_) stream_.close(Linger::no);
}

// The other side reads why before it loses the connection.
void WebSocketState::fail(WebSocketFailure why, CloseCode code) {
  failure_ = why;
  is_over_ = true;
  if (!has_sent_close_) write_close(code, {});
  stream_.set_deadline(options().close_timeout);
  stream_.close();
}

// One that takes nothing shows by that whether it is there; and who does not read hears nothing.
void WebSocketState::on_silence() {
  const bool was_pinged = has_pinged_;
  const bool has_heard = has_heard_;
  has_pinged_ = has_heard_ = false;
  if (has_heard || has_sent_close_ || is_over_ || !stream_.is_open()) return;
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

// ---- how it ends

// Without room for the goodbye it ends without.
void WebSocketState::close(CloseCode code, std::string_view reason) {
  if (!is_writable()) return;
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
  handler_->on_closed(code_, text_of(said), reason_of(error));
}

}  // namespace spate::http
