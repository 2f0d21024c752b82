#include "http/server/server_core.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "base/report_drained.h"
#include "http/codec/head_writer.h"
#include "http/codec/syntax.h"
#include "http/content/forwarded.h"
#include "http/server/http1_connection.h"
#include "http/server/http2_connection.h"
#include "spate/assert.h"
#include "spate/error.h"
#include "spate/http/date.h"
#include "spate/named_callback.h"

namespace spate::http {

namespace {

constexpr Nanos kSecond{1'000'000'000};
constexpr std::string_view kStatusLine = "HTTP/1.1 200 OK\r\n";  // The most frequent status.
constexpr std::string_view kDateName = "Date: ";
// ListenOptions::max_unsent: enough for the time between the notification of room and the next
// write.
constexpr int kMostUnsent = 128 * 1024;

bool has_agreed_on_http2(const Stream& stream) {
  const std::optional<TlsInfo> tls = tls_info(stream);
  return tls && tls->alpn == "h2";
}

}  // namespace

// ---- beginning and end

bool ServerCore::are_valid(const ServerOptions& options) {
  return options.max_head > 0 && options.max_head <= 65'535 && options.max_request_line > 0 &&
         options.max_fields > 0 && options.max_fields <= kMostHeadFields &&
         options.max_requests > 0 && options.compression_level >= 1 &&
         options.compression_level <= 9 &&
         !options.tls.is_client() && (options.http2 || !options.tls.offers("h2")) &&
         !has_control(options.server_name) &&
         (options.trusted_proxies.empty() || is_token(options.client_field)) &&
         (options.proxies.empty() || options.proxy_protocol == ProxyProtocol::from_proxies);
}

Result<std::unique_ptr<ServerCore>> ServerCore::create(Loop& loop, Service* service,
                                                       OnRequest on_request,
                                                       ServerOptions options) {
  if (!are_valid(options)) return std::unexpected(system_error(EINVAL));
  std::unique_ptr<ServerCore> core(new (std::nothrow)
                                       ServerCore(loop, service, std::move(options)));
  if (core == nullptr) return std::unexpected(system_error(ENOMEM));
  core->pool_ = new (std::nothrow) ExchangePool(*core, loop, core->options_.compression_level);
  core->reads_clock_ = core->options_.log || core->options_.measure_durations;
  const bool is_whole = core->pool_ != nullptr && core->on_request_.set(std::move(on_request)) &&
                        core->log_.set(std::move(core->options_.log)) &&
                        core->on_exception_.set(std::move(core->options_.on_exception)) &&
                        core->on_tls_failure_.set(std::move(core->options_.on_tls_failure)) &&
                        core->end_of_loop_.start();
  if (!is_whole) return std::unexpected(system_error(ENOMEM));
  return core;
}

ServerCore::ServerCore(Loop& loop, Service* service, ServerOptions options)
    : loop_(loop),
      service_(service),
      options_(std::move(options)),
      head_limits_{.head = options_.max_head,
                   .line = options_.max_request_line,
                   .fields = options_.max_fields},
      tick_(loop, named<Timer, ActiveKind::http_server>([this] { tick(); })),
      settle_(loop, named<Timer, ActiveKind::http_server>([this] { settle(); })),
      grace_(loop, named<Timer, ActiveKind::http_server>([this] { end_grace(); })),
      end_of_loop_(loop, [this] { close_all(); }) {
  if (!options_.tls) return;
  shake_hands_ = with_tls(
      options_.tls,
      [this](Stream stream, const Address& peer) { accept_secured(std::move(stream), peer); },
      [this](const TlsFailure& failure, const Address& peer) { lose_handshake(failure, peer); });
}

ServerCore::~ServerCore() {
  close_all();
  drop_kept(due_);
  if (pool_ != nullptr) pool_->abandon();
}

// Calls no user code.
void ServerCore::close_all() {
  const auto drained = std::move(on_drained_);
  const auto on_request = std::move(on_request_);
  const auto log = std::move(log_);
  const auto on_exception = std::move(on_exception_);
  const auto on_tls_failure = std::move(on_tls_failure_);
  upgraded_.disown();
  proxy_headers_.clear();
  while (ServerConnection* connection = connections_.first()) {
    forget(*connection);
    delete connection;
  }
}

ListenOptions ServerCore::bounded(ListenOptions options) {
  if (options.max_unsent == 0) options.max_unsent = kMostUnsent;
  return options;
}

Result<Address> ServerCore::listen(const Address& address, const ListenOptions& options) {
  Result<Listener> listener = Listener::create(
      loop_, address,
      [this](Stream stream, const Address& peer) { accept(std::move(stream), peer); },
      bounded(options));
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  return listeners_.back().address();
}

Address ServerCore::address() const {
  return listeners_.empty() ? Address() : listeners_.front().address();
}

void ServerCore::serve(Exchange exchange) {
  counters_.requests.add(1);
  ExchangeState& state = *ExchangeState::of(exchange);
  state.mark_counted();
  const bool is_served = state.guard([&] {
    service_ != nullptr ? service_->on_request(std::move(exchange))
                        : on_request_(std::move(exchange));
  });
  if (!is_served) [[unlikely]]
    state.fail();
}

void ServerCore::report_exception(const Request& request) noexcept {
  if (options_.exceptions_end_program) exception_left("http::Server");
  if (!on_exception_) return;
  call_user("ServerOptions::on_exception",
            [&] { on_exception_(std::current_exception(), request); });
}

// Makes the system call for the peer only if `proxies` matters.
bool ServerCore::expects_proxy_header(const Stream& stream) const {
  if (options_.tls) return false;  // It was read before the handshake.
  const bool depends = options_.proxy_protocol == ProxyProtocol::from_proxies;
  const Address peer = depends ? stream.peer_address() : Address();
  // A TCP connection whose peer has reset it is not one of a unix socket.
  const bool has_peer = peer.family() != Address::Family::none || !stream.local_address().is_ip();
  if (depends && !has_peer) return false;
  return spate::expects_proxy_header(options_.proxy_protocol, options_.proxies, peer);
}

// A TCP connection whose peer has reset it has no peer address, but a local one.
bool ServerCore::is_local(const Stream& stream) const {
  return !options_.trusted_proxies.empty() && !stream.local_address().is_ip();
}

Address ServerCore::client_of(const FieldsView& fields, const Address& peer, bool is_local) const {
  const std::vector<Network>& trusted = options_.trusted_proxies;
  const bool has_peer = peer.family() != Address::Family::none || is_local;
  return has_peer && is_in_any(trusted, peer)
             ? client_behind(fields, options_.client_field, peer, trusted)
             : peer;
}

// ---- connections

// A connection that arrives after the grace of a drain is closed.
void ServerCore::accept(Stream stream, const Address& peer) {
  if (!options_.tls) return add(std::move(stream));
  if (!shake_hands_) return;
  ++handshakes_;
  spate::expects_proxy_header(options_.proxy_protocol, options_.proxies, peer)
      ? read_header(std::move(stream), peer)
      : shake_hands_(std::move(stream), peer);
}

// For TLS; without it, the connection reads the header itself.
void ServerCore::read_header(Stream stream, const Address& peer) {
  const auto at = proxy_headers_.emplace(proxy_headers_.end());
  *at = read_proxy_header(std::move(stream), options_.head_timeout,
                          [this, at, peer](Result<Stream> plain, const ProxyHeader& header) {
                            const Connecting done = std::move(*at);
                            proxy_headers_.erase(at);
                            const bool is_named = header.source.family() != Address::Family::none;
                            on_header(std::move(plain), is_named ? header.source : peer);
                          });
  if (at->is_pending()) return;
  proxy_headers_.erase(at);  // Memory ran out.
  --handshakes_;
  note_one_less();
}

void ServerCore::on_header(Result<Stream> plain, const Address& peer) {
  if (plain) return shake_hands_(std::move(*plain), peer);
  --handshakes_;
  count_refused();
  note_one_less();
}

void ServerCore::accept_secured(Stream stream, const Address& peer) {
  --handshakes_;
  if (options_.proxy_protocol == ProxyProtocol::off) return add(std::move(stream));
  std::unique_ptr<Address> kept(new (std::nothrow) Address(peer));
  if (kept == nullptr) return note_one_less();
  add(std::move(stream), std::move(kept));
}

void ServerCore::lose_handshake(const TlsFailure& failure, const Address& peer) {
  --handshakes_;
  const Watch watch(lifetime_);
  if (on_tls_failure_) on_tls_failure_(failure, peer);
  if (!watch.is_gone()) note_one_less();
}

// When memory runs out, the connection is closed.
void ServerCore::add(Stream stream, std::unique_ptr<Address> peer) {
  SPATE_ASSERT(&stream.loop() == &loop_, "a server's connections are of its loop");
  counters_.accepted.add(1);
  // After a reload(), the context may offer a protocol that this server does not speak.
  if (has_agreed_on_http2(stream))
    return options_.http2 ? add_http2(std::move(stream), std::move(peer)) : stream.abort();
  auto* connection = new (std::nothrow) Http1Connection(*this, std::move(stream), std::move(peer));
  if (connection == nullptr) return;
  link(*connection);
  connection->start();
}

void ServerCore::add_http2(Stream stream, std::unique_ptr<Address> peer) {
  auto* connection =
      new (std::nothrow) Http2Connection(*this, std::move(stream), std::move(peer));
  if (connection == nullptr) return;
  link(*connection);
  connection->start();
}

void ServerCore::link(ServerConnection& connection) {
  connections_.push_front(connection);
  counters_.connections.add(1);
  if (is_draining_) give_notice();
}

void ServerCore::forget(ServerConnection& connection) {
  if (next_visited_ == &connection) next_visited_ = connections_.after(connection);
  connection.unlink();
  counters_.connections.subtract(1);
  note_one_less();
}

void ServerCore::note_one_less() {
  if (has_drained()) settle_soon();
}

// Each visit may destroy any of the connections, and the server.
template <class Visit>
void ServerCore::visit_connections(Visit visit) {
  const Watch watch(lifetime_);
  next_visited_ = connections_.first();
  while (!watch.is_gone() && next_visited_ != nullptr) {
    ServerConnection& connection = *next_visited_;
    next_visited_ = connections_.after(connection);
    visit(connection);
  }
}

// ---- exchanges in progress

bool ServerCore::list(ExchangeState& state) {
  if (ExchangesInProgress::is_linked(state)) return false;
  in_progress_.push_front(state);
  if (!tick_.is_active()) tick_.start(kSecond, kSecond);
  return true;
}

bool ServerCore::unlist(ExchangeState& state) {
  if (!ExchangesInProgress::is_linked(state)) return false;
  ExchangesInProgress::remove(state);
  return true;
}

void ServerCore::settle_later(ExchangeState& state) {
  if (DueExchanges::is_linked(state)) DueExchanges::remove(state);
  due_.push_front(state);
  settle_soon();
}

void ServerCore::settle_soon() {
  if (!settle_.start(Nanos{0})) settle_.feed();
}

void ServerCore::settle() {
  const Watch watch(lifetime_);
  settle_exchanges();
  if (!watch.is_gone()) close_idle();
  if (watch.is_gone()) return;
  if (!has_drained()) return;
  grace_.stop();
  tick_.stop();  // It would keep the loop alive until its next second.
  report_drained(
      on_drained_, [](auto& done) { done(); }, [&] { return !watch.is_gone() && has_drained(); });
}

void ServerCore::settle_exchanges() {
  const Watch watch(lifetime_);
  // Exchanges that become due meanwhile are settled by a later call.
  DueExchanges due = std::move(due_);
  while (ExchangeState* state = due.pop_front()) {
    state->wire() != nullptr ? state->wire()->settle(*state) : log_kept(*state);
    if (watch.is_gone()) return drop_kept(due);
  }
}

// Logs the exchanges that were detached from their wire. The others belong to their connections.
void ServerCore::drop_kept(DueExchanges& due) {
  while (ExchangeState* state = due.pop_front()) state->let_go_of_end();
}

void ServerCore::tick() {
  const Watch watch(lifetime_);
  const Nanos now = loop_.now();
  ExchangesInProgress ticking = std::move(in_progress_);
  if (ticking.empty()) return tick_.stop();
  while (ExchangeState* state = ticking.pop_front()) {
    // Listed again first: on_tick() may end the exchange, which removes it from the list.
    in_progress_.push_front(*state);
    state->wire()->on_tick(*state, now);
    if (watch.is_gone()) return;
  }
}

// ---- the end of an exchange

Nanos ServerCore::time_of_request() {
  if (reads_clock_) loop_.update_now();
  return loop_.now();
}

void ServerCore::count_end(const ExchangeState& state) {
  if (state.is_counted()) counters_.end_exchange();
  const std::uint64_t received = state.body().received();
  if (received != 0) counters_.received.add(received);
  counters_.sent.add(state.response().sent());
  if (options_.measure_durations) [[unlikely]]
    counters_.add_duration(state.response().status(), state.age(time_of_request()));
}

bool ServerCore::is_logged(const ExchangeState& state) const { return log_ || state.has_on_end(); }

void ServerCore::conclude(ExchangeState& state, std::error_code error, Lifetime& carrier) {
  const ExchangeState::Use use(state);
  count_end(state);
  if (!is_logged(state)) {
    state.part();
  } else if (!log_parting(state, error, carrier)) {
    return state.drop_handler();
  }
  state.report_closed(error);
}

// Calls the log after the exchange has left its wire: calls to the Exchange fail then, so the log
// may make any. False if this was destroyed.
bool ServerCore::log_parting(ExchangeState& state, std::error_code error, Lifetime& carrier) {
  const Watch server(lifetime_);
  const Watch watch(carrier);
  state.part(&watch);
  log(state, error, time_of_request());
  state.forget_carrier();
  return !server.is_gone();
}

void ServerCore::conclude_later(ExchangeState& state, std::error_code error) {
  const ExchangeState::Use use(state);
  count_end(state);
  const bool is_kept = is_logged(state) && state.keep_end(error, time_of_request());
  state.detach_without_callback();
  if (!is_kept) return;
  if (DueExchanges::is_linked(state)) DueExchanges::remove(state);
  due_.push_front(state);
  settle_soon();
}

void ServerCore::log(ExchangeState& state, std::error_code error, Nanos ended) {
  const AccessRecord record{.request = state.request(),
                            .status = state.response().status(),
                            .sent = state.response().sent(),
                            .received = state.body().received(),
                            .duration = state.age(ended),
                            .error = state.logged_error(error),
                            .reason = state.reason()};
  const Watch watch(lifetime_);
  for (OnExchangeEnd& function : state.take_on_end()) {
    state.guard([&] { function(record); });
    if (watch.is_gone()) return;
  }
  if (log_) state.guard([&] { log_(record); });
}

void ServerCore::log_kept(ExchangeState& state) {
  log(state, state.end_kept().error, state.end_kept().at);
  state.let_go_of_end();
}

inline void ServerCore::keep_lines_fresh() {
  const std::int64_t second = loop_.now() / kSecond;
  if (second != std::exchange(prepared_in_, second)) prepare_lines();
}

std::string_view ServerCore::date() {
  keep_lines_fresh();
  return std::string_view(prepared_lines_).substr(kStatusLine.size() + kDateName.size(), kDateSize);
}

void ServerCore::begin_head(HeadWriter& writer, Status status) {
  keep_lines_fresh();
  if (status == Status::ok) return writer.prepared(prepared_lines_);
  writer.status_line(status);
  writer.prepared(std::string_view(prepared_lines_).substr(kStatusLine.size()));
}

void ServerCore::prepare_lines() {
  char date[kDateSize];
  format_date(std::chrono::floor<std::chrono::seconds>(loop_.wall_now()), date);
  prepared_lines_ = std::string(kStatusLine);
  prepared_lines_.append(kDateName).append(date, kDateSize).append("\r\n");
  if (!options_.server_name.empty()) prepared_lines_ += "Server: " + options_.server_name + "\r\n";
}

// ---- drain

void ServerCore::drain(Nanos grace, Nanos notice, Function<void()> done) {
  is_draining_ = true;
  if (done) on_drained_.push_back(std::move(done));
  drained_by_ = deadline_after(loop_.now(), grace);
  for (Listener& listener : listeners_) listener.close();
  notice_ = std::min(notice, kSecond);
  grace_.start(notice_);
  close_idle_soon();
  connections_.for_each([](ServerConnection& each) { each.on_drain(); });
  upgraded_.say_goodbye();
  note_one_less();
}

// Waits a turn, so that requests that arrived before are read first.
void ServerCore::close_idle_soon() {
  turns_to_idle_ = 2;
  settle_soon();
}

void ServerCore::close_idle() {
  if (turns_to_idle_ == 0) return;
  if (--turns_to_idle_ != 0) return settle_soon();
  visit_connections([](ServerConnection& connection) { connection.close_if_idle(); });
}

// Closes idle connections at the end of the notice period, and the rest at the end of the grace.
void ServerCore::end_grace() {
  const Nanos left = drained_by_ - loop_.now();
  if (left > Nanos{0}) {
    grace_.start(left);
    visit_connections([](ServerConnection& connection) { connection.close_to_requests(); });
  } else {
    abort_all(Error::deadline);
  }
}

void ServerCore::abort_all(std::error_code error) {
  const Watch watch(lifetime_);
  shake_hands_ = {};
  proxy_headers_.clear();
  handshakes_ = 0;
  while (UpgradedConnections* upgraded = upgraded_.first_open()) {
    upgraded->end_one(error);
    if (watch.is_gone()) return;
  }
  visit_connections([error](ServerConnection& connection) { connection.abort(error); });
  if (!watch.is_gone()) note_one_less();
}

}  // namespace spate::http
