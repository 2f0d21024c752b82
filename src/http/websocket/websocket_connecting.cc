#include "http/websocket/websocket_connecting.h"

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/characters.h"
#include "http/codec/message_coding.h"
#include "http/codec/system_error.h"
#include "http/codec/websocket_handshake.h"
#include "http/websocket/loop_websockets.h"
#include "http/websocket/websocket_group.h"
#include "http/websocket/websocket_state.h"
#include "spate/http/error.h"
#include "spate/http/url.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

bool begins_with(std::string_view url, std::string_view scheme) {
  return equal_ignoring_case(url.substr(0, scheme.size()), scheme);
}

// Returns the http URL for a ws URL; empty for another scheme.
std::string http_url(std::string_view url) {
  if (!begins_with(url, "ws:") && !begins_with(url, "wss:")) return {};
  return std::string("http").append(url.substr(2));
}

bool is_plain(const CallOptions& call) {
  return call.method == Method::get && call.body.empty() && call.content.empty() && !call.upload &&
         call.upgrade.empty();
}

bool are_tokens(const std::vector<std::string>& protocols) {
  for (const std::string& each : protocols) {
    if (!is_token(each)) return false;
  }
  return true;
}

// The keys of a handshake need not be secret, but must be random (RFC 6455 §4.1).
std::string random_key(LoopWebSockets& loop_state) {
  std::array<char, 16> bytes;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Mask)) {
    const std::optional<Mask> part = loop_state.random_mask();
    if (!part) return {};
    std::memcpy(bytes.data() + at, part->data(), sizeof(Mask));
  }
  return websocket_key(bytes);
}

std::size_t number_of(std::string_view protocol, const std::vector<std::string>& protocols) {
  const auto found = std::ranges::find(protocols, protocol);
  return found == protocols.end() ? 0 : static_cast<std::size_t>(found - protocols.begin()) + 1;
}

}  // namespace

WebSocketConnecting::WebSocketConnecting(WebSocketState& state)
    : state_(state), is_lost_(state.loop(), named<Timer, ActiveKind::websocket>([this] {
                                on_closed(system_error(ECANCELED));
                              })) {}

std::error_code WebSocketConnecting::start(WebSocketState& state, Client& client,
                                           std::string_view url, CallOptions call) {
  const std::string http = http_url(url);
  if (http.empty()) return Url::parse(url) ? HttpError::unknown_scheme : HttpError::invalid_url;
  if (!is_plain(call) || !are_tokens(state.options().protocols))
    return system_error(EINVAL);
  std::unique_ptr<WebSocketConnecting> connecting(new (std::nothrow) WebSocketConnecting(state));
  if (connecting == nullptr) return system_error(ENOMEM);
  WebSocketConnecting& opening = *connecting;
  if (!state.connect_by(std::move(connecting))) return system_error(ENOMEM);
  return opening.open(client, http, std::move(call)) ? std::error_code() : system_error(ENOMEM);
}

bool WebSocketConnecting::open(Client& client, std::string_view url, CallOptions call) {
  key_ = random_key(state_.loop_state());
  if (key_.empty() || !add_fields(call.fields)) return false;
  call.upgrade = kWebSocket;
  call_ = client.send(url, *this, std::move(call));
  if (!call_.is_open()) return false;
  CallState::of(call_)->set_witness(*this);
  return true;
}

bool WebSocketConnecting::add_fields(Fields& fields) const {
  const WebSocketOptions& options = state_.options();
  std::string protocols;
  for (const std::string& each : options.protocols)
    protocols.append(protocols.empty() ? "" : ", ").append(each);
  return fields.set(FieldId::sec_websocket_key, key_) &&
         fields.set(FieldId::sec_websocket_version, kWebSocketVersion) &&
         (protocols.empty() || fields.set(FieldId::sec_websocket_protocol, protocols)) &&
         (options.compression == WebSocketCompression::none ||
          fields.set(FieldId::sec_websocket_extensions, kDeflate));
}

void WebSocketConnecting::on_response(const Response&) {
  const auto self = state_.take_connecting();
  call_.cancel();
  state_.report_not_connected(HttpError::not_upgraded);
}

void WebSocketConnecting::on_closed(std::error_code error) {
  const auto self = state_.take_connecting();
  state_.report_not_connected(error);
}

// on_closed() is called by the loop, never from inside a function of the Client.
void WebSocketConnecting::on_client_gone() {
  if (!is_lost_.start(Nanos{0})) is_lost_.feed();
}

void WebSocketConnecting::cancel() {
  if (!call_.is_open()) return;
  call_.cancel();
  on_client_gone();
}

void WebSocketConnecting::on_upgraded(const Response& response, Stream stream) {
  const auto self = state_.take_connecting();
  if (const std::error_code error = enter(response, std::move(stream)))
    return state_.report_not_connected(error);
  state_.report_open();
}

// Over HTTP/2 there is no key, and no response to it (RFC 8441 §5).
bool WebSocketConnecting::has_accepted_key(const Response& response) const {
  const FieldsView fields = response.fields();
  return response.version() == Version::http_2 ||
         (fields.count(FieldId::sec_websocket_accept) == 1 &&
          fields[FieldId::sec_websocket_accept] == websocket_accept(key_));
}

// The server may only accept what the client offered (RFC 6455 §4.1).
std::error_code WebSocketConnecting::enter(const Response& response, Stream stream) {
  const FieldsView fields = response.fields();
  const WebSocketOptions& options = state_.options();
  const bool is_compressing = options.compression == WebSocketCompression::each_message;
  const AgreedExtensions extensions = agreed_extensions(fields, is_compressing);
  const std::string_view protocol = fields[FieldId::sec_websocket_protocol];
  const std::size_t number = number_of(protocol, options.protocols);
  const bool is_good = has_accepted_key(response) && extensions != AgreedExtensions::bad &&
                       (number != 0 || !fields.contains(FieldId::sec_websocket_protocol));
  if (!is_good) return HttpError::malformed_response;
  const int window = extensions == AgreedExtensions::deflate ? kLargestWindow : 0;
  const bool is_open = state_.open(std::move(stream), number, window);
  return is_open ? std::error_code() : system_error(ENOMEM);
}

}  // namespace spate::http
