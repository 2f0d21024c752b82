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
#include "spate/error.h"
#include "spate/http/request.h"
#include "spate/http/response.h"
#include "sys/random.h"

namespace spate::http {

namespace {

// For how long an upstream may think about a body that it was asked whether it wants.
constexpr Nanos kPatience{1'000'000'000};

// Path and query as they were sent, wherever the request line had them.
std::string target_of(const Request& request) {
  const std::string_view target = request.target();
  if (target.starts_with('/') || target == "*") return std::string(target);
  const std::size_t query = target.find('?');
  std::string path(request.path());
  return query == std::string_view::npos ? path : path.append(target.substr(query));
}

void describe(const Request& request, const GatewayOptions& gateway, CallOptions& options) {
  options.method = request.method();
  if (options.method == Method::other) options.method_name = request.method_name();
  options.target = target_of(request);
  options.deadline = Nanos{0};
  options.upgrade = wanted_upgrade(request, gateway);
  options.accept_trailers =
      options.upgrade.empty() && request.fields().list(FieldId::te).contains("trailers");
  if (!request.has_body()) return;
  options.upload = request.content_length().value_or(kUnknownSize);
  const bool asks_first = request.version() != Version::http_1_0;
  if (asks_first && !request[FieldId::expect].empty()) options.expect_continue = kPatience;
}

// HTTP/2 has none, and HTTP/1 demands one; its answer is of interest to nobody. False if there are
// no random numbers.
bool add_websocket_key(Fields& fields) {
  std::array<char, 16> bytes;
  return sys::random_bytes(std::as_writable_bytes(std::span(bytes))) == 0 &&
         fields.set(FieldId::sec_websocket_key, websocket_key(bytes));
}

// An upstream of HTTP/2 sees no key, to which a client of HTTP/1 wants an answer.
bool owes_websocket_answer(const Request& request, const Response& response) {
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
      timeout_(exchange_.loop(), [this] { on_timeout(); }) {}

Forwarding::~Forwarding() {
  exchange_.respond(Status::service_unavailable);
  relaying_.abort();
}

// A body is not asked for before there is somebody to take it, so that another can be tried.
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

// ---- the request's body

void Forwarding::on_upload() {
  is_uploading_ = true;
  postpone();
  if (!exchange_.start(front_)) done();  // The client has gone.
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
  if (!copy.add_all(trailers)) return fail(system_error(ENOMEM));
  call_.end(std::move(copy));
}

void Forwarding::on_client_end() {
  if (core_.options().half_closed == HalfClosed::is_gone) give_up();
}

// ---- the answer

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
  if (!has_begun_) give_up();
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
  if (error) return call_.was_sent() || !try_another(error) ? fail(error) : void();
  exchange_.end(trailers_);
  done();
}

void Forwarding::on_upgraded(const Response& response, Stream stream) {
  Fields fields;
  if (!add_response_fields(response, core_.options(), fields)) return fail(system_error(ENOMEM));
  if (owes_websocket_answer(exchange_.request(), response)) {
    const std::string_view key = exchange_.request()[FieldId::sec_websocket_key];
    if (!is_websocket_key(key)) return refuse(Status::bad_request);
    if (!fields.set(FieldId::sec_websocket_accept, websocket_accept(key)))
      return fail(system_error(ENOMEM));
  }
  Result<Stream> client = exchange_.upgrade(response[FieldId::upgrade], fields);
  if (!client) return fail(client.error());
  timeout_.stop();
  is_tunnel_ = true;
  ++core_.counts().tunnels;
  relaying_ = relay(std::move(*client), std::move(stream), [this](const RelayResult&) { done(); },
                    {.idle_timeout = core_.options().tunnel_timeout});
}

// ---- time

void Forwarding::postpone() {
  const Nanos timeout = core_.options().timeout;
  if (timeout > Nanos{0} && !timeout_.restart(timeout)) timeout_.feed();
}

void Forwarding::on_timeout() {
  if (waits_for_client()) return postpone();
  if (CallState* call = CallState::of(call_)) call->note_late();
  fail(Error::deadline);
}

// The Server has deadlines of its own for clients.
bool Forwarding::waits_for_client() const {
  return exchange_.is_open() && (exchange_.is_full() || (is_uploading_ && !call_.is_full()));
}

// ---- the end

bool Forwarding::try_another(std::error_code error) {
  ++core_.counts().unreached;
  if (!on_unreached_) return false;
  const std::string another = on_unreached_(error);
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
