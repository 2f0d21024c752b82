// The WebSocket handle, and accepting of requests.
#include "spate/http/websocket.h"

#include <cerrno>
#include <utility>

#include "base/ask.h"
#include "http/codec/system_error.h"
#include "http/codec/websocket_handshake.h"
#include "http/server/exchange_state.h"
#include "http/server/server_core.h"
#include "http/websocket/websocket_connecting.h"
#include "http/websocket/websocket_state.h"
#include "spate/assert.h"
#include "spate/http/request.h"

namespace spate::http {

namespace {

[[maybe_unused]] constexpr std::size_t kMostProtocols = 15;

std::unexpected<std::error_code> error_of(int number) {
  return std::unexpected(system_error(number));
}

// Returns accept()'s error for a status.
std::unexpected<std::error_code> error_of(Status why) {
  if (why == Status::service_unavailable) return error_of(ECANCELED);
  return error_of(why == Status::forbidden ? EACCES : EPROTO);
}

// Over HTTP/2 there is no key (RFC 8441 §5).
bool has_key(const Request& request) {
  const FieldsView& fields = request.fields();
  return request.version() == Version::http_2 ||
         (fields.count(FieldId::sec_websocket_key) == 1 &&
          is_websocket_key(fields[FieldId::sec_websocket_key]));
}

// Returns the status with which the request is refused (RFC 6455 §4.2.1); ok if it is accepted.
Status objection_to(const Request& request, const WebSocketOptions& options,
                    const ServerCore& server) {
  const FieldsView& fields = request.fields();
  if (request.method() != Method::get) return Status::method_not_allowed;
  const bool is_asked = fields.list(FieldId::upgrade).contains(kWebSocket) && has_key(request);
  if (fields[FieldId::sec_websocket_version] != kWebSocketVersion) return Status::upgrade_required;
  if (!is_asked) return Status::bad_request;
  const bool is_welcome =
      options.origins == Origins::any || is_same_origin(fields[FieldId::origin], request.host());
  if (!is_welcome) return Status::forbidden;
  return server.is_draining() ? Status::service_unavailable : Status::ok;
}

bool refuse(Exchange& exchange, Status status) {
  Fields fields;
  const bool is_required = status == Status::upgrade_required;
  if (status == Status::method_not_allowed) fields.set(FieldId::allow, "GET");
  if (is_required) fields.set(FieldId::sec_websocket_version, kWebSocketVersion);
  const std::string_view upgrade = is_required ? kWebSocket : std::string_view();
  return ExchangeState::of(exchange)->respond(
      {.status = status, .fields = &fields, .upgrade = upgrade}, Bytes());
}

// Returns the number of the first of our protocols that the client offers, from 1; 0 for no match.
std::size_t choose_protocol(const Request& request, const WebSocketOptions& options) {
  const ListValues named = request.fields().list(FieldId::sec_websocket_protocol);
  for (std::size_t i = 0; i < options.protocols.size(); ++i) {
    for (const std::string_view each : named) {
      if (each == options.protocols[i]) return i + 1;
    }
  }
  return 0;
}

bool add_handshake_fields(Fields& fields, const Request& request, std::string_view protocol,
                          const DeflateAgreement& deflate) {
  const std::string_view key = request[FieldId::sec_websocket_key];
  return (key.empty() || fields.set(FieldId::sec_websocket_accept, websocket_accept(key))) &&
         (protocol.empty() || fields.set(FieldId::sec_websocket_protocol, protocol)) &&
         (!deflate || fields.set(FieldId::sec_websocket_extensions, deflate.response()));
}

}  // namespace

Result<WebSocket> WebSocket::accept(Exchange exchange, WebSocketHandler& handler,
                                    const WebSocketOptions& options) {
  SPATE_ASSERT(options.protocols.size() <= kMostProtocols, "at most 15 protocols");
  if (!exchange.is_open()) return error_of(EPIPE);
  const Request& request = exchange.request();
  ServerCore& server = ExchangeState::of(exchange)->wire()->server();
  if (const Status why = objection_to(request, options, server); why != Status::ok) {
    refuse(exchange, why);
    return error_of(why);
  }
  WebSocket socket(WebSocketState::make(exchange.loop(), handler, options, &server,
                                        request.route()));
  if (socket.state_ == nullptr) return error_of(ENOMEM);
  const std::size_t protocol = choose_protocol(request, options);
  const bool may_compress = options.compression == WebSocketCompression::each_message;
  const DeflateAgreement deflate =
      may_compress ? agree_to_deflate(request.fields()) : DeflateAgreement();
  Fields fields;
  if (!add_handshake_fields(fields, request, protocol == 0 ? "" : options.protocols[protocol - 1],
                            deflate))
    return error_of(ENOMEM);
  Result<Stream> stream = exchange.upgrade(kWebSocket, fields);
  if (!stream) {
    refuse(exchange, Status::bad_request);
    return std::unexpected(stream.error());
  }
  if (!socket.state_->open(std::move(*stream), protocol, deflate.window)) return error_of(ENOMEM);
  return socket;
}

Result<WebSocket> WebSocket::connect(Client& client, std::string_view url,
                                     WebSocketHandler& handler, const WebSocketOptions& options,
                                     CallOptions call) {
  SPATE_ASSERT(options.protocols.size() <= kMostProtocols, "at most 15 protocols");
  WebSocket socket(WebSocketState::make(client.loop(), handler, options, nullptr));
  if (socket.state_ == nullptr) return error_of(ENOMEM);
  if (const std::error_code error =
          WebSocketConnecting::start(*socket.state_, client, url, std::move(call)))
    return std::unexpected(error);
  return socket;
}

void WebSocket::leave() { std::exchange(state_, nullptr)->abandon(); }

bool WebSocket::is_open() const { return ask(state_, &WebSocketState::is_open); }
bool WebSocket::is_writable() const { return ask(state_, &WebSocketState::is_writable); }
std::string_view WebSocket::protocol() const { return ask(state_, &WebSocketState::protocol); }

bool WebSocket::send(MessageKind kind, Bytes bytes) {
  return state_ != nullptr && state_->send(kind, bytes);
}

bool WebSocket::send(MessageKind kind, Buffer&& buffer) {
  return state_ != nullptr && state_->send(kind, std::move(buffer));
}

bool WebSocket::send_part(MessageKind kind, Bytes bytes, bool is_last) {
  return state_ != nullptr && state_->send_part(kind, bytes, is_last);
}

bool WebSocket::ping(Bytes bytes) { return state_ != nullptr && state_->ping(bytes); }

std::size_t WebSocket::queued() const { return ask(state_, &WebSocketState::queued); }
bool WebSocket::is_full() const { return ask(state_, &WebSocketState::is_full); }

void WebSocket::pause() { tell(state_, &WebSocketState::pause); }
void WebSocket::resume() { tell(state_, &WebSocketState::resume); }

void WebSocket::close(CloseCode code, std::string_view reason) {
  if (state_ != nullptr) state_->close(code, reason);
}

void WebSocket::abort() { tell(state_, &WebSocketState::abort); }

const Stream& WebSocket::stream() const {
  SPATE_ASSERT(state_ != nullptr, "the WebSocket is empty");
  return state_->stream();
}

Loop& WebSocket::loop() const {
  SPATE_ASSERT(state_ != nullptr, "the WebSocket is empty");
  return state_->loop();
}

}  // namespace spate::http
