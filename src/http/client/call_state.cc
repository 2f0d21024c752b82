// CallState's request, and the functions of Call. The response is in call_response.cc.
#include "http/client/call_state.h"

#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "http/client/carrier.h"
#include "http/client/client_core.h"
#include "http/client/proxy_fields.h"
#include "http/client/userinfo.h"
#include "http/codec/characters.h"
#include "http/codec/head_writer.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "spate/loop.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

// The limit of a queued upload: as QueueLimits::high.
constexpr std::size_t kHigh = 256 * 1024;
constexpr std::uint64_t kMostFetched = 16 * 1024 * 1024;

bool is_target(std::string_view text) {
  return text == "*" || (text.starts_with('/') && consists_of(text, kVisible));
}

}  // namespace

CallState::CallState(ClientCore& core, CallOptions options, CallHandler* handler,
                     OnResponse on_response)
    : core_(&core),
      handler_(handler),
      on_response_(std::move(on_response)),
      options_(std::move(options)),
      most_(options_.max_body),
      deadline_(core.loop(),
                named<Timer, ActiveKind::http_call, CallState::describe>([this] { end_late(); })),
      continue_(core.loop(), named<Timer, ActiveKind::http_call, CallState::describe>(
                                 [this] { let_body_go(); })),
      wait_(core.loop(),
            named<Timer, ActiveKind::http_call, CallState::describe>([this] { on_wait_over(); })) {
  if (most_ == 0) most_ = handler == nullptr ? kMostFetched : UINT64_MAX;
}

void CallState::describe(const Node& node, ActiveInfo& info) {
  const auto* call = static_cast<const CallState*>(node.context);
  info.label = call->method_text();
  if (call->url_) (info.label += ' ') += call->url_->to_string();
}

std::string_view CallState::method_text() const {
  return options_.method == Method::other ? std::string_view(options_.method_name)
                                          : name_of(options_.method);
}

// ---- the request

std::error_code CallState::prepare(std::string_view text) {
  if (const std::error_code error = check_options()) return error;
  if (const std::error_code error = locate(text)) return error;
  if (const std::error_code error = add_fields()) return error;
  if (options_.upload) {
    body_.expect_upload(*options_.upload);
  } else if (!body_.hold(options_.body, std::move(options_.content))) {
    return system_error(ENOMEM);
  }
  options_.body = {};
  choose_route();
  return is_valid(route_.proxy) ? std::error_code() : system_error(EINVAL);
}

// Finds the URL, relative to that of the Client.
std::error_code CallState::locate(std::string_view text) {
  std::string without_userinfo;
  if (core_->options().accept_userinfo) {
    Result<UrlUserinfo> split = take_userinfo(text);
    if (!split) return HttpError::invalid_url;
    if (split->credentials && !options_.credentials)
      options_.credentials = std::move(split->credentials);
    text = without_userinfo = std::move(split->url);
  }
  const Url* base = core_->base();
  Result<Url> parsed = base != nullptr ? base->resolve(text) : Url::parse(text);
  if (!parsed) return HttpError::invalid_url;
  url_ = std::move(*parsed);
  if (core_->can_reach(*url_)) return {};
  return url_->scheme() == "https" ? HttpError::https_without_tls : HttpError::unknown_scheme;
}

// Adds the fields of the Client, and credentials. Secrets are for the origin of its base URL only.
std::error_code CallState::add_fields() {
  const ClientOptions& defaults = core_->options();
  const bool is_at_base = core_->base() != nullptr && core_->base()->has_origin_of(*url_);
  Fields& fields = options_.fields;
  Fields added;
  for (const Field& field : defaults.fields.view()) {
    const bool is_secret = field.id == FieldId::authorization || field.id == FieldId::cookie;
    if (!fields.contains(field.name) && (is_at_base || !is_secret))
      added.add(field.name, field.value);
  }
  if (!fields.add_all(added)) return system_error(ENOMEM);
  if (!options_.credentials && is_at_base) options_.credentials = defaults.credentials;
  if (!options_.credentials || fields.contains(FieldId::authorization)) return {};
  if (!is_valid(*options_.credentials)) return system_error(EINVAL);
  const bool is_set = fields.set(FieldId::authorization, basic_credentials(*options_.credentials));
  return is_set ? std::error_code() : system_error(ENOMEM);
}

std::error_code CallState::check_options() const {
  const bool has_body = !options_.body.empty() || !options_.content.empty();
  const bool is_named = options_.method != Method::other || is_token(options_.method_name);
  if (options_.method == Method::connect || options_.method_name == "CONNECT" || !is_named ||
      (options_.upload && has_body) || has_two_ways() || !options_.fields.is_complete() ||
      options_.fields.view().contains_any(kOwnFields) ||
      !(options_.target.empty() || is_target(options_.target)))
    return system_error(EINVAL);
  const bool may_upgrade = is_protocol(options_.upgrade) && handler_ != nullptr &&
                           !options_.upload && !has_body && !options_.accept_trailers;
  return options_.upgrade.empty() || may_upgrade ? std::error_code() : system_error(EINVAL);
}

// An address is connected to directly, so it excludes a proxy and ClientOptions::open. A PROXY
// header would reach a proxy.
bool CallState::has_two_ways() const {
  const bool is_proxied = options_.proxy && options_.proxy->kind != ProxyKind::none;
  const bool has_address = options_.address.family() != Address::Family::none;
  return (has_address && (is_proxied || core_->options().open)) ||
         (!options_.proxy_header.empty() && is_proxied);
}

void CallState::choose_route() {
  route_.is_secure = url_->is_secure();
  route_.host = url_->host_name();
  route_.port = url_->port();
  // HTTP/2 has no other method for an upgrade.
  route_.is_http1 = core_->options().http2 && asks_upgrade() && options_.method != Method::get;
  route_.address = options_.address;
  route_.proxy_header = options_.proxy_header;
  if (options_.proxy) {
    route_.proxy = *options_.proxy;
  } else if (options_.address.family() == Address::Family::none && route_.proxy_header.empty()) {
    route_.proxy = core_->options().proxies.proxy_for(*url_);
  }
}

bool CallState::start_deadline() {
  return options_.deadline <= Nanos{0} || deadline_.start(options_.deadline);
}

void CallState::note_late() {
  if (carrier_ != nullptr) carrier_->note_late();
}

void CallState::end_late() {
  note_late();
  core_->fail(*this, Error::deadline);
}

bool CallState::is_idempotent() const {
  return http::is_idempotent(options_.method) || options_.fields.contains(FieldId::idempotency_key);
}

std::string CallState::cookies() const {
  CookieJar* jar = core_->options().jar;
  if (jar == nullptr || options_.fields.contains(FieldId::cookie)) return {};
  return jar->header(*url_, core_->wall_second());
}

void CallState::repeat(Repeat why) {
  if (why == Repeat::after_refusal) {
    ++refusals_;
  } else {
    has_repeated_ = true;
    needs_fresh_ = why == Repeat::on_fresh;
  }
}

void CallState::begin_body() {
  body_.begin();
  const bool has_body = body_.content() != Content::none && body_.size() > 0;
  awaits_continue_ = options_.expect_continue > Nanos{0} && has_body;
}

std::string CallState::begin() {
  begin_body();
  const std::string cookies = this->cookies();
  std::string head(1024, '\0');
  HeadWriter writer(head);
  write_head(writer, cookies);
  head.resize(writer.size());
  if (writer.is_whole()) return head;
  HeadWriter again(head);
  write_head(again, cookies);
  return head;
}

// A plain HTTP proxy receives the whole URL, without a path if the target is "*" (RFC 9112 §3.2.4).
std::string CallState::target() const {
  const std::string wanted =
      options_.target.empty() ? std::string(url_->target()) : options_.target;
  if (!route_.sends_absolute_url()) return wanted;
  return "http://" + std::string(url_->authority()) + (wanted == "*" ? "" : wanted);
}

template <class Add>
void CallState::add_own(std::string_view cookies, Add add) const {
  const auto add_new = [&](FieldId id, std::string_view value) {
    if (!value.empty() && !options_.fields.contains(id)) add(id, value);
  };
  add_new(FieldId::user_agent, core_->options().user_agent);
  if (options_.decompress) add_new(FieldId::accept_encoding, "gzip, deflate");
  add_new(FieldId::cookie, cookies);
  if (awaits_continue_) add_new(FieldId::expect, "100-continue");
}

ConnectionOption CallState::connection_option() const {
  if (asks_upgrade()) return ConnectionOption::upgrade;
  return options_.accept_trailers ? ConnectionOption::te : ConnectionOption::none;
}

void CallState::write_head(HeadWriter& writer, std::string_view cookies) const {
  const Fields& fields = options_.fields;
  writer.request_line(method_text(), target());
  if (!fields.contains(FieldId::host)) writer.field(FieldId::host, url_->authority());
  add_own(cookies, [&](FieldId id, std::string_view value) { writer.field(id, value); });
  const bool is_known =
      !route_.proxy.user.empty() && !fields.contains(FieldId::proxy_authorization);
  if (route_.sends_absolute_url() && is_known)
    writer.field(FieldId::proxy_authorization, basic_credentials(route_.proxy));
  writer.framing(
      frame_sent_request(options_.method, body_.content(), body_.size(), connection_option()),
      options_.upgrade);
  writer.fields(fields);
  writer.end();
}

// Host becomes :authority. An upgrade is an extended CONNECT, which needs no WebSocket key (RFC
// 8441 §5).
bool CallState::begin(Http2Request& request) {
  begin_body();
  request.target = target();
  request.cookies = cookies();
  const Fields& fields = options_.fields;
  constexpr std::size_t kOwn = 5;
  Http2Fields& head = request.head;
  if (!head.reserve(fields.size() + kOwn)) return false;
  head.add(":method", asks_upgrade() ? "CONNECT" : method_text());
  if (asks_upgrade()) head.add(":protocol", options_.upgrade);
  head.add(":scheme", url_->scheme());
  head.add(":authority",
           fields.contains(FieldId::host) ? fields[FieldId::host] : url_->authority());
  head.add(":path", request.target);
  add_own(request.cookies,
          [&](FieldId id, std::string_view value) { head.add(name_of(id), value); });
  const Outgoing outgoing = frame_sent_request(options_.method, body_.content(), body_.size(), {});
  if (outgoing.announced == Announced::length) head.add_length(outgoing.length);
  if (options_.accept_trailers) head.add("te", "trailers");
  for (const Field& field : fields.view()) {
    const bool is_key = field.id == FieldId::sec_websocket_key && asks_upgrade();
    if (field.id != FieldId::host && !is_key) head.add(field.name, field.value);
  }
  return !head.is_refused();
}

// ---- with a carrier

void CallState::attach(Carrier& carrier) {
  carrier_ = &carrier;
  was_sent_ = true;
  watch_progress();
  if (awaits_continue_) {
    continue_.start(options_.expect_continue);
  } else {
    let_body_go();
  }
}

void CallState::detach() {
  carrier_ = nullptr;
  continue_.stop();
  wait_.stop();
}

bool CallState::send_body(Stream& stream) {
  if (awaits_continue_) return true;
  const bool is_open = body_.send(stream);
  if (wants_room_ && !is_full()) core_->settle_later(*this);
  return is_open;
}

void CallState::stop_waiting_for_continue() {
  awaits_continue_ = false;
  continue_.stop();
}

void CallState::let_body_go() {
  stop_waiting_for_continue();
  if (options_.upload && !std::exchange(was_upload_reported_, true)) {
    wants_upload_ = true;
    core_->settle_later(*this);
  }
  if (carrier_ != nullptr) carrier_->send_body();
}

// The server must switch to the requested protocol, and to no other.
bool CallState::accepts_upgrade(const FieldsView& fields) const {
  return !options_.upgrade.empty() &&
         equal_ignoring_case(fields[FieldId::upgrade], options_.upgrade) &&
         fields.list(FieldId::connection).contains("upgrade");
}

// ---- the functions of Call

void CallState::leave() {
  forget_user();
  if (core_ != nullptr) core_->leave(*this);
}

void CallState::set_over() {
  core_ = nullptr;
  deadline_.stop();
  continue_.stop();
  wait_.stop();
}

void CallState::forget_user() {
  const OnResponse gone = std::exchange(on_response_, nullptr);  // Destroyed last.
  handler_ = nullptr;
  witness_ = nullptr;
}

bool CallState::write(Bytes bytes) {
  if (core_ == nullptr || !body_.takes(bytes.size())) return false;
  if (!body_.append(bytes)) return fail_later(system_error(ENOMEM)), false;
  if (carrier_ != nullptr) carrier_->send_body();
  wants_room_ = wants_room_ || is_full();
  return true;
}

bool CallState::write(Buffer&& buffer) {
  if (core_ == nullptr || !body_.takes(buffer.size())) return false;
  body_.append(std::move(buffer));
  return write(Bytes());
}

bool CallState::end(Fields behind) {
  if (core_ == nullptr || !body_.takes(0)) return false;
  if (!body_.end(std::move(behind))) return fail_later(system_error(EINVAL)), true;
  if (carrier_ != nullptr) carrier_->send_body();
  return true;
}

void CallState::fail_later(std::error_code error) {
  pending_error = error;
  core_->settle_later(*this);
}

bool CallState::is_full() const {
  if (core_ == nullptr) return false;
  return body_.waiting() > kHigh || (carrier_ != nullptr && carrier_->is_full());
}

void CallState::on_room() {
  if (wants_room_ && !is_full()) settle();
}

void CallState::pause() {
  is_paused_ = true;
  if (carrier_ != nullptr) carrier_->pause();
}

void CallState::resume() {
  if (!std::exchange(is_paused_, false) || carrier_ == nullptr) return;
  note_progress();
  carrier_->resume();
  if (has_more_ || carrier_->has_kept()) core_->settle_later(*this);
}

void CallState::report_upload() {
  if (std::exchange(wants_upload_, false) && handler_ != nullptr) handler_->on_upload();
}

// Called by the loop: makes the calls that were not allowed inside a call of the user.
void CallState::settle() {
  const Ref<CallState> self(this);
  if (pending_error) return core_->fail(*this, pending_error);
  report_upload();
  if (is_open() && wants_room_ && !is_full()) {
    wants_room_ = false;
    if (handler_ != nullptr) handler_->on_drained();
  }
  if (carrier_ == nullptr || is_paused_ || is_showing_) return;
  if (has_more_ || carrier_->has_kept()) carrier_->show_more();
}

}  // namespace spate::http
