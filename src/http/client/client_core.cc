#include "http/client/client_core.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/client/carrier.h"
#include "http/client/proxy_fields.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"

namespace spate::http {

namespace {

constexpr std::size_t kMostHead = 65'535;

bool is_valid(const ClientOptions& options) {
  return options.max_per_origin > 0 && options.max_connections > 0 && options.max_head > 0 &&
         options.max_head <= kMostHead && !has_control(options.user_agent) &&
         is_valid(options.proxies.proxy) && is_valid(options.proxies.for_https.value_or(Proxy()));
}

// What two routes differ in, as one text.
std::string key_of(const Route& route) {
  const Proxy& proxy = route.proxy;
  std::string key;
  for (const std::string& part :
       {std::string(route.is_secure ? "s" : ""), std::string(route.is_http1 ? "1" : ""), route.host,
        std::to_string(route.port), route.address.to_string(),
        std::to_string(static_cast<int>(proxy.kind)), proxy.host, std::to_string(proxy.port),
        proxy.user, proxy.password}) {
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
  if (!made->end_of_loop_.start()) return std::unexpected(system_error(ENOMEM));
  return made.leak();
}

ClientCore::ClientCore(Loop& loop, ClientOptions options)
    : loop_(loop),
      options_(std::move(options)),
      head_limits_{.head = options_.max_head, .line = options_.max_head},
      settle_(loop, [this] { settle(); }),
      end_of_loop_(loop, [this] { close(); }) {}

ClientCore::~ClientCore() = default;

void ClientCore::close() {
  is_closed_ = true;
  while (calls_ != nullptr) {
    const Ref<CallState> call(calls_);
    leave(*call);
    call->tell_witness();
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
  } else if (call->pending_error = error; !settle_later(*call)) {
    leave(*call);
    return {};
  }
  return Call(call.leak());
}

void ClientCore::link(CallState& call) {
  Ref<CallState>(&call).leak();
  call.begun = ++tickets_;
  call.next = calls_;
  if (calls_ != nullptr) calls_->previous = &call;
  calls_ = &call;
  ++call_count_;
}

// Whoever calls goes on with it only if he holds a reference.
void ClientCore::unlink(CallState& call) {
  if (call.next != nullptr) call.next->previous = call.previous;
  (call.previous == nullptr ? calls_ : call.previous->next) = call.next;
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
  leave(call);
  call.tell_closed(error);
}

void ClientCore::complete(CallState& call) {
  const Ref<CallState> keep(&call);
  if (call.is_redirecting()) {
    ++counts_.redirected;
    call.redirect();
    return enter(call, Origin::Place::last);
  }
  call.tell_end();
  if (!call.is_open()) return;  // This may be gone with it.
  unlink(call);
  call.tell_closed({});
}

void ClientCore::upgrade(CallState& call, Stream stream) {
  const Ref<CallState> keep(&call);
  unlink(call);
  call.tell_upgraded(std::move(stream));
}

// With prior knowledge there is only HTTP/2, and the TLS of other calls leads to it again.
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

// Not again: that would drop what is due.
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

// That of whoever has waited longest, and may have one more.
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
