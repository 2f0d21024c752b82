#include "http/client/client_core.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/mix.h"
#include "http/client/carrier.h"
#include "http/client/proxy_fields.h"
#include "http/client/userinfo.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "spate/named_callback.h"
#include "sys/random.h"

namespace spate::http {

namespace {

constexpr std::size_t kMostHead = 65'535;

// A TLS context that offers "h2" needs `http2`, because a server that selects it expects frames.
bool is_valid_tls(const ClientOptions& options) {
  const TlsContext& upgrades = options.tls_for_upgrades;
  return !options.tls.is_server() && (options.http2 || !options.tls.offers("h2")) &&
         !upgrades.is_server() && !upgrades.offers("h2") && (!upgrades || options.tls);
}

bool is_valid(const RetryOptions& retry) {
  return retry.first_delay >= Nanos{0} && retry.max_delay >= Nanos{0} &&
         retry.max_delay < kForever && retry.first_delay < kForever &&
         retry.max_retry_after >= Nanos{0} && retry.budget >= 0 && retry.budget <= 1;
}

bool is_valid(const ClientOptions& options) {
  return options.max_per_origin > 0 && options.max_connections > 0 && options.max_head > 0 &&
         options.max_head <= kMostHead && !has_control(options.user_agent) &&
         options.fields.is_complete() && !options.fields.view().contains_any(kOwnFields) &&
         (!options.credentials || (is_valid(*options.credentials) && !options.base_url.empty())) &&
         is_valid(options.retry) && is_valid_tls(options) &&
         (options.http2 || !options.http2_without_tls) && is_valid(options.proxies.proxy) &&
         is_valid(options.proxies.for_https.value_or(Proxy()));
}

// Returns a text that is unique for a route.
std::string key_of(const Route& route) {
  const Proxy& proxy = route.proxy;
  std::string key;
  for (const std::string& part :
       {std::string(route.is_secure ? "s" : ""), std::string(route.is_http1 ? "1" : ""), route.host,
        std::to_string(route.port), route.address.to_string(),
        std::to_string(static_cast<int>(proxy.kind)), proxy.host, std::to_string(proxy.port),
        proxy.user, proxy.password, route.proxy_header}) {
    key += std::to_string(part.size()) + ":";
    key += part;
  }
  return key;
}

}  // namespace

Result<ClientCore*> ClientCore::create(Loop& loop, ClientOptions options) {
  if (!is_valid(options)) return std::unexpected(system_error(EINVAL));
  auto* core = new (std::nothrow) ClientCore(loop, std::move(options));
  if (core == nullptr) return std::unexpected(system_error(ENOMEM));
  Ref<ClientCore> made(core);
  if (const std::error_code error = made->prepare()) return std::unexpected(error);
  if (!made->end_of_loop_.start()) return std::unexpected(system_error(ENOMEM));
  return made.leak();
}

ClientCore::ClientCore(Loop& loop, ClientOptions options)
    : loop_(loop),
      options_(std::move(options)),
      head_limits_{.head = options_.max_head, .line = options_.max_head, .fields = SIZE_MAX},
      random_(sys::random_seed()),
      settle_(loop, named<Timer, ActiveKind::http_call>([this] { settle(); })),
      end_of_loop_(loop, [this] { close(); }) {}

ClientCore::~ClientCore() = default;

// Parses the base URL.
std::error_code ClientCore::prepare() {
  if (options_.base_url.empty()) return {};
  Result<UrlUserinfo> split = take_userinfo(options_.base_url);
  Result<Url> url = split ? Url::parse(split->url) : std::unexpected(split.error());
  if (!url) return system_error(EINVAL);
  base_ = std::move(*url);
  if (split->credentials && !options_.credentials) options_.credentials = split->credentials;
  return {};
}

// The functions are destroyed last, as they may own the client.
void ClientCore::close() {
  const Ref<ClientCore> self(this);
  const OpenStream open = std::exchange(options_.open, nullptr);
  const OnRetry on_retry = std::exchange(options_.on_retry, nullptr);
  is_closed_ = true;
  while (!calls_.empty()) {
    const Ref<CallState> call(calls_.first());
    leave(*call);
    call->report_to_witness();
    call->forget_user();
  }
  origins_.clear();
  settle_.stop();
  unsettled_.clear();
}

// ---- calls

Call ClientCore::start(std::string_view url, CallHandler* handler, OnResponse on_response,
                       CallOptions options) {
  Ref<CallState> call(new (std::nothrow)
                          CallState(*this, std::move(options), handler, std::move(on_response)));
  if (!call) return {};
  link(*call);
  std::error_code error = call->prepare(url);
  if (!error && !call->start_deadline()) error = system_error(ENOMEM);
  if (!error) {
    enter(*call, Origin::Place::last);
  // The loop reports the error: no callback is called from inside start().
  } else if (call->pending_error = error; !settle_later(*call)) {
    leave(*call);
    return {};
  }
  return Call(call.leak());
}

void ClientCore::link(CallState& call) {
  // The list holds a reference until unlink().
  Ref<CallState>(&call).leak();
  call.begun = ++tickets_;
  calls_.push_front(call);
  ++call_count_;
  ++started_;
}

// The call may be destroyed, unless the caller holds a reference.
void ClientCore::unlink(CallState& call) {
  calls_.remove(call);
  --call_count_;
  call.set_over();
  Ref<CallState>::adopt(&call);
}

void ClientCore::enter(CallState& call, Origin::Place place) {
  call.ticket = ++tickets_;
  origin_of(call.route()).add(call, place);
}

void ClientCore::leave(CallState& call) {
  const Ref<CallState> keep(&call);
  if (call.carrier() != nullptr) call.carrier()->abandon();
  if (call.waits_in != nullptr) call.waits_in->remove(call);
  unlink(call);
}

void ClientCore::fail(CallState& call, std::error_code error) {
  const Ref<CallState> keep(&call);
  if (call.plan_retry(error)) return retry(call, error);
  call.note_failure(error);
  last_failure_ = call.last_failure();
  leave(call);
  call.report_closed(error);
}

// Removes the call from its connection or its queue until the delay is over.
void ClientCore::retry(CallState& call, std::error_code error) {
  const Ref<ClientCore> self(this);
  const Ref<CallState> keep(&call);
  if (call.carrier() != nullptr) call.carrier()->abandon();
  if (call.waits_in != nullptr) call.waits_in->remove(call);
  ++counts_.retried;
  const Retry event = call.begin_retry(error);
  if (!options_.on_retry) return;
  OnRetry on_retry = std::exchange(options_.on_retry, nullptr);
  on_retry(event);
  if (!is_closed_) options_.on_retry = std::move(on_retry);
}

bool ClientCore::take_from_budget() {
  const RetryOptions& retry = options_.retry;
  const double most = retry.burst + retry.budget * static_cast<double>(started_);
  const bool is_left = static_cast<double>(counts_.retried) + 1 <= most;
  if (!is_left) ++counts_.not_retried;
  return is_left;
}

Nanos ClientCore::jitter(Nanos most) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(most.count()) * share(random_++))};
}

void ClientCore::complete(CallState& call) {
  const Ref<CallState> keep(&call);
  if (call.will_retry()) return retry(call, {});
  if (call.is_redirecting()) {
    ++counts_.redirected;
    call.redirect();
    return enter(call, Origin::Place::last);
  }
  call.report_end();
  if (!call.is_open()) return;  // The callback may have destroyed the client.
  unlink(call);
  call.report_closed({});
}

void ClientCore::upgrade(CallState& call, Stream stream) {
  const Ref<CallState> keep(&call);
  unlink(call);
  call.report_upgraded(std::move(stream));
}

// With `http2_without_tls` there is no HTTP/1.1, and `tls` would select HTTP/2 again.
void ClientCore::ask_by_http1(CallState& call) {
  const Ref<CallState> keep(&call);
  const bool is_possible = call.route().is_secure && options_.tls_for_upgrades;
  if (!is_possible) return fail(call, HttpError::not_upgraded);
  call.carrier()->abandon();
  call.ask_by_http1();
  origin_of(call.route()).add(call, Origin::Place::last);
}

void ClientCore::repeat(CallState& call, CallState::Repeat why) {
  const Ref<CallState> keep(&call);
  call.repeat(why);
  ++counts_.repeated;
  call.carrier()->abandon();
  origin_of(call.route()).add(call, Origin::Place::first);
}

bool ClientCore::settle_later(CallState& call) {
  if (!std::exchange(call.is_unsettled, true)) unsettled_.emplace_back(&call);
  return wake();
}

// Does not feed it again: that would drop a queued call of the timer.
bool ClientCore::wake() {
  return settle_.is_active() || settle_.is_pending() || settle_.start(Nanos{0}) || settle_.feed();
}

void ClientCore::settle() {
  const Ref<ClientCore> self(this);
  for (const Ref<CallState>& call : std::exchange(unsettled_, {})) {
    call->is_unsettled = false;
    if (call->is_open()) call->settle();
  }
  if (is_closed_ || !std::exchange(has_changed_, false)) return;
  serve_those_in_want();
  forget_empty_origins();
}

void ClientCore::count_request(bool is_reused) {
  ++counts_.requests;
  counts_.reused += is_reused;
}

std::chrono::sys_seconds ClientCore::wall_second() const {
  return std::chrono::floor<std::chrono::seconds>(loop_.wall_now());
}

void ClientCore::keep_cookies(const Url& url, const FieldsView& fields) {
  if (options_.jar == nullptr) return;
  for (const std::string_view cookie : fields.all(FieldId::set_cookie))
    options_.jar->store(url, cookie, wall_second());
}

// ---- the pool

Origin& ClientCore::origin_of(const Route& route) {
  std::unique_ptr<Origin>& origin = origins_[key_of(route)];
  if (origin == nullptr) origin = std::make_unique<Origin>(*this, route);
  return *origin;
}

std::size_t ClientCore::connections() const {
  std::size_t count = 0;
  for (const auto& [key, origin] : origins_) count += origin->size();
  return count;
}

bool ClientCore::make_room(Origin& origin) {
  if (origin.size() >= options_.max_per_origin) {
    if (origin.idle() == 0) return false;
    origin.drop_oldest_idle();
  }
  if (connections() < options_.max_connections) return true;
  Origin* other = with_oldest_idle();
  if (other == nullptr) {
    is_in_want_ = true;
    return false;
  }
  other->drop_oldest_idle();
  return true;
}

Origin* ClientCore::with_oldest_idle() const {
  Origin* oldest = nullptr;
  for (const auto& [key, origin] : origins_) {
    if (origin->idle() > 0 &&
        (oldest == nullptr || *origin->oldest_idle() < *oldest->oldest_idle()))
      oldest = origin.get();
  }
  return oldest;
}

void ClientCore::note_change() {
  if (is_closed_ || std::exchange(has_changed_, true)) return;
  wake();
}

// Returns the origin whose first waiting call is the oldest, among those that may have another
// connection.
Origin* ClientCore::first_in_want() const {
  Origin* first = nullptr;
  for (const auto& [key, origin] : origins_) {
    const CallState* call = origin->waiting().first();
    if (call == nullptr || origin->size() >= options_.max_per_origin) continue;
    if (first == nullptr || call->ticket < first->waiting().first()->ticket) first = origin.get();
  }
  return first;
}

bool ClientCore::is_turn_of_another(const CallState* call) const {
  if (!is_in_want_) return false;
  const Origin* first = first_in_want();
  if (first == nullptr) return false;
  return call == nullptr || first->waiting().first()->ticket < call->ticket;
}

void ClientCore::serve_those_in_want() {
  is_in_want_ = false;
  std::vector<Origin*> wanting;
  for (const auto& [key, origin] : origins_)
    if (!origin->waiting().empty()) wanting.push_back(origin.get());
  std::ranges::sort(wanting, {},
                    [](const Origin* origin) { return origin->waiting().first()->ticket; });
  for (Origin* origin : wanting) origin->serve();
}

void ClientCore::forget_empty_origins() {
  std::erase_if(origins_, [](const auto& entry) { return entry.second->is_empty(); });
}

void ClientCore::close_idle() {
  for (const auto& [key, origin] : origins_)
    while (origin->idle() > 0) origin->drop_oldest_idle();
}

ClientMetrics ClientCore::metrics() const {
  ClientMetrics metrics = counts_;
  metrics.calls = call_count_;
  for (const auto& [key, origin] : origins_) {
    metrics.connections += origin->size();
    metrics.idle += origin->idle();
    metrics.waiting += origin->waiting().size();
  }
  return metrics;
}

}  // namespace spate::http
