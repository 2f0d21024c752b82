#include "http/gateway/forwarding.h"

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "http/client/call_state.h"
#include "http/codec/characters.h"
#include "http/codec/system_error.h"
#include "http/codec/websocket_handshake.h"
#include "http/gateway/forwarded_fields.h"
#include "http/gateway/gateway_core.h"
#include "http/server/exchange_state.h"
#include "spate/error.h"
#include "spate/http/exchange_keeper.h"
#include "spate/http/request.h"
#include "spate/http/response.h"
#include "spate/named_callback.h"
#include "sys/random.h"

namespace spate::http {

namespace {

// How long an upstream may take to respond to "Expect: 100-continue".
constexpr Nanos kPatience{1'000'000'000};

// Returns path and query as they were sent, from any form of the target.
std::string target_of(const Request& request) {
  const std::string_view target = request.target();
  if (target.starts_with('/') || target == "*") return std::string(target);
  const std::size_t query = target.find('?');
  std::string path(request.path().empty() ? "*" : request.path());
  return query == std::string_view::npos ? path : path.append(target.substr(query));
}

// Names no destination: the upstream sees the same for all connections of a client.
std::string proxy_header_for(const Address& client, ProxyVersion version) {
  const Address address = client.unmapped();
  const bool is_six = address.family() == Address::Family::ipv6;
  return proxy_header(address, is_six ? Address::any_ipv6(0) : Address::any_ipv4(0), version);
}

void describe(const Request& request, const GatewayOptions& gateway, CallOptions& options) {
  options.method = request.method();
  if (options.method == Method::other) options.method_name = request.method_name();
  options.target = target_of(request);
  options.deadline = Nanos{0};
  options.upgrade = wanted_upgrade(request, gateway);
  if (gateway.proxy_protocol)
    options.proxy_header = proxy_header_for(request.client(), *gateway.proxy_protocol);
  options.accept_trailers =
      options.upgrade.empty() && request.fields().list(FieldId::te).contains("trailers");
  if (!request.has_body()) return;
  options.upload = request.content_length().value_or(kUnknownSize);
  const bool asks_first = request.version() != Version::http_1_0;
  if (asks_first && !request[FieldId::expect].empty()) options.expect_continue = kPatience;
}

// HTTP/2 has no key, and HTTP/1 requires one; no client will check its acceptance. False if there
// are no random bytes.
bool add_websocket_key(Fields& fields) {
  std::array<char, 16> bytes;
  return sys::random_bytes(std::as_writable_bytes(std::span(bytes))) == 0 &&
         fields.set(FieldId::sec_websocket_key, websocket_key(bytes));
}

// An HTTP/2 upstream does not see the key, but an HTTP/1 client needs its acceptance.
bool owes_websocket_response(const Request& request, const Response& response) {
  return equal_ignoring_case(response[FieldId::upgrade], kWebSocket) &&
         response.version() == Version::http_2 && request.version() != Version::http_2;
}

bool is_late(std::error_code error) {
  return error == Error::deadline || error == Error::connect_timeout ||
         error == std::errc::timed_out;
}

Status status_of(std::error_code error) {
  if (error == std::errc::not_enough_memory) return Status::service_unavailable;
  return is_late(error) ? Status::gateway_timeout : Status::bad_gateway;
}

}  // namespace

Forwarding::Forwarding(GatewayCore& core, Exchange exchange, OnUnreached on_unreached)
    : core_(core),
      on_unreached_(std::move(on_unreached)),
      exchange_(std::move(exchange)),
      timeout_(exchange_.loop(), named<Timer, ActiveKind::http_request>([this] { on_timeout(); })) {
}

Forwarding::~Forwarding() {
  exchange_.respond(Status::service_unavailable);
  relaying_.abort();
}

// The client's body is not asked for before the upstream can take it, so that another upstream can
// be tried until then.
void Forwarding::begin(std::string_view upstream) {
  const Request& request = exchange_.request();
  CallOptions options;
  if (!add_request_fields(request, core_.options(), options.fields))
    return fail(system_error(ENOMEM));
  describe(request, core_.options(), options);
  const bool needs_key = options.upgrade == kWebSocket && request.version() == Version::http_2;
  if (needs_key && !add_websocket_key(options.fields)) return fail(system_error(ENOMEM));
  postpone();
  const bool has_body = request.has_body();
  call_ = core_.client().send(upstream, *this, std::move(options));
  if (!call_.is_open()) return fail(system_error(ENOMEM));
  if (!has_body) exchange_.start(front_);
}

void Forwarding::begin_at_any() {
  if (begin_at_next()) return;
  ++core_.counts().failed;
  refuse(Status::bad_gateway);
}

// Chooses an upstream, and begins there. False if none is left. Otherwise this may be destroyed.
bool Forwarding::begin_at_next() {
  UpstreamPool* pool = core_.pool();
  Backend* backend = pool == nullptr ? nullptr : pool->choose(exchange_.request(), tried_);
  if (backend == nullptr) return false;
  core_.counts().retried += !tried_.empty();
  tried_.push_back(backend);
  use_.begin(*pool, *backend);
  begin(backend->url);
  return true;
}

// ---- the request's body

void Forwarding::on_upload() {
  has_taken_body_ = is_uploading_ = true;
  postpone();
  if (!exchange_.start(front_)) done();  // The client has disconnected.
}

void Forwarding::take_upload(Bytes bytes) {
  postpone();
  if (!call_.write(bytes)) return fail(system_error(ENOMEM));
  if (call_.is_full()) exchange_.pause();
}

void Forwarding::end_upload(const FieldsView& trailers) {
  postpone();
  is_uploading_ = false;
  Fields copy;
  if (!add_request_trailers(trailers, core_.options(), copy)) return fail(system_error(ENOMEM));
  call_.end(std::move(copy));
}

void Forwarding::on_client_end() {
  if (core_.options().half_closed == HalfClosed::is_gone) give_up();
}

// ---- the response

void Forwarding::on_informational(Status status, const FieldsView& fields) {
  postpone();
  Fields copy;
  if (add_informational_fields(fields, copy)) exchange_.inform(status, copy);
}

void Forwarding::on_response(const Response& response) {
  postpone();
  Fields fields;
  if (!add_response_fields(response, core_.options(), fields)) return fail(system_error(ENOMEM));
  has_begun_ = exchange_.begin(response.status(), fields, response.content_length());
  if (!has_begun_) return give_up();
  use_.succeed();
}

void Forwarding::on_body(Bytes bytes) {
  postpone();
  if (!exchange_.write(bytes)) return give_up();
  if (exchange_.is_full()) call_.pause();
}

void Forwarding::on_body_end(const FieldsView& trailers) {
  if (!trailers_.add_all(trailers)) fail(system_error(ENOMEM));
}

void Forwarding::on_closed(std::error_code error) {
  if (error) {
    use_.fail(error);
    return may_try_another(error) && try_another(error) ? void() : fail(error);
  }
  exchange_.end(trailers_);
  done();
}

void Forwarding::on_upgraded(const Response& response, Stream stream) {
  Fields fields;
  if (!add_response_fields(response, core_.options(), fields)) return fail(system_error(ENOMEM));
  if (owes_websocket_response(exchange_.request(), response)) {
    const std::string_view key = exchange_.request()[FieldId::sec_websocket_key];
    if (!is_websocket_key(key)) return refuse(Status::bad_request);
    if (!fields.set(FieldId::sec_websocket_accept, websocket_accept(key)))
      return fail(system_error(ENOMEM));
  }
  Result<Stream> client = exchange_.upgrade(response[FieldId::upgrade], fields);
  if (!client) return fail(client.error());
  timeout_.stop();
  use_.succeed();
  is_tunnel_ = true;
  ++core_.counts().tunnels;
  relaying_ = relay(std::move(*client), std::move(stream), [this](const RelayResult&) { done(); },
                    {.idle_timeout = core_.options().tunnel_timeout});
}

// ---- timeouts

void Forwarding::postpone() {
  const Nanos timeout = core_.options().timeout;
  if (timeout > Nanos{0} && !timeout_.restart(timeout)) timeout_.feed();
}

void Forwarding::on_timeout() {
  if (waits_for_client()) return postpone();
  if (CallState* call = CallState::of(call_)) call->note_late();
  use_.fail(Error::deadline);
  fail(Error::deadline);
}

// The Server itself enforces timeouts for clients.
bool Forwarding::waits_for_client() const {
  return exchange_.is_open() && (exchange_.is_full() || (is_uploading_ && !call_.is_full()));
}

// ---- the end

// A request of which something was sent may have been processed. The Client then decides whether
// to repeat it, and knows whether a part of a response was forwarded.
bool Forwarding::may_try_another(std::error_code error) const {
  if (!call_.was_sent()) return true;
  return !tried_.empty() && !has_taken_body_ && CallState::of(call_)->may_ask_another(error);
}

// False if there is no other upstream. Otherwise this may be destroyed.
bool Forwarding::try_another(std::error_code error) {
  const bool was_sent = call_.was_sent();
  if (!was_sent) ++core_.counts().unreached;
  if (tried_.empty()) return ask_for_another(error);
  sent_ += was_sent;
  if (sent_ >= core_.pool()->attempts()) return false;
  return begin_at_next();
}

// The function may destroy the Gateway, and this with it.
bool Forwarding::ask_for_another(std::error_code error) {
  if (!on_unreached_) return false;
  const Watch watch(core_.lifetime());
  OnUnreached ask = std::move(on_unreached_);
  std::string another;
  ExchangeState& exchange = *ExchangeState::of(exchange_);
  const ExchangeKeeper keeper(exchange_);
  const bool has_thrown = !exchange.guard([&] { another = ask(error); });
  if (watch.is_gone()) return true;
  if (has_thrown) return refuse(Status::internal_server_error), true;
  on_unreached_ = std::move(ask);
  if (!another.empty()) begin(another);
  return !another.empty();
}

void Forwarding::fail(std::error_code error) {
  ++core_.counts().failed;
  has_begun_ ? give_up() : refuse(status_of(error));
}

void Forwarding::refuse(Status status) {
  exchange_.respond(status);
  done();
}

void Forwarding::give_up() {
  exchange_.abort();
  done();
}

void Forwarding::done() { core_.remove(*this); }

}  // namespace spate::http
