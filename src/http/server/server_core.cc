#include "http/server/server_core.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "http/codec/head_writer.h"
#include "http/server/http1_connection.h"
#include "http/server/http2_connection.h"
#include "spate/assert.h"
#include "spate/error.h"
#include "spate/http/date.h"

namespace spate::http {

namespace {

constexpr Nanos kSecond{1'000'000'000};
constexpr std::string_view kStatusLine = "HTTP/1.1 200 OK\r\n";  // Of most answers.
constexpr std::string_view kDateName = "Date: ";
// ListenOptions::max_unsent: enough for the time it takes to be told of room, and to write.
constexpr int kMostUnsent = 128 * 1024;

bool has_agreed_on_http2(const Stream& stream) {
  const std::optional<TlsInfo> tls = tls_info(stream);
  return tls && tls->alpn == "h2";
}

}  // namespace

// ---- how it begins and ends

bool ServerCore::are_valid(const ServerOptions& options) {
  return options.max_head > 0 && options.max_head <= 65'535 && options.max_request_line > 0 &&
         options.max_fields > 0 && options.max_fields <= kMostHeadFields &&
         options.max_requests > 0 && options.compression_level >= 1 &&
         options.compression_level <= 9 &&
         (!options.tls || options.proxy_protocol == ProxyProtocol::off);
}

Result<std::unique_ptr<ServerCore>> ServerCore::create(Loop& loop, Service* service,
                                                       OnRequest on_request,
                                                       ServerOptions options) {
  if (!are_valid(options)) return std::unexpected(system_error(EINVAL));
  std::unique_ptr<ServerCore> core(
      new (std::nothrow) ServerCore(loop, service, std::move(on_request), std::move(options)));
  if (core != nullptr)
    core->pool_ = new (std::nothrow) ExchangePool(loop, core->options_.compression_level);
  if (core == nullptr || core->pool_ == nullptr || !core->end_of_loop_.start())
    return std::unexpected(system_error(ENOMEM));
  return core;
}

ServerCore::ServerCore(Loop& loop, Service* service, OnRequest on_request, ServerOptions options)
    : loop_(loop),
      service_(service),
      on_request_(std::move(on_request)),
      options_(std::move(options)),
      head_limits_{.head = options_.max_head,
                   .line = options_.max_request_line,
                   .fields = options_.max_fields},
      tick_(loop, [this] { tick(); }),
      settle_(loop, [this] { settle(); }),
      grace_(loop, [this] { end_grace(); }),
      end_of_loop_(loop, [this] { close_all(); }) {
  if (!options_.tls) return;
  shake_hands_ =
      with_tls(options_.tls, [this](Stream stream, const Address&) { add(std::move(stream)); });
}

ServerCore::~ServerCore() {
  close_all();
  if (pool_ != nullptr) pool_->abandon();
}

// Nobody is told.
void ServerCore::close_all() {
  on_drained_ = {};
  guests_.disown();
  while (connections_ != nullptr) {
    ServerConnection* connection = connections_;
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
  ++metrics_.requests;
  ++metrics_.exchanges;
  ExchangeState::of(exchange)->is_counted = true;
  if (service_ != nullptr) return service_->on_request(std::move(exchange));
  on_request_(std::move(exchange));
}

// The kernel is asked for the peer only where that matters.
bool ServerCore::expects_proxy_header(const Stream& stream) const {
  if (options_.proxy_protocol != ProxyProtocol::from_proxies)
    return options_.proxy_protocol == ProxyProtocol::always;
  const Address from = stream.peer_address().unmapped();
  return from.is_ip() && std::ranges::any_of(options_.proxies, [&from](const Address& proxy) {
           return proxy.unmapped().with_port(0) == from.with_port(0);
         });
}

// ---- connections

void ServerCore::accept(Stream stream, const Address& peer) {
  shake_hands_ ? shake_hands_(std::move(stream), peer) : add(std::move(stream));
}

// Out of memory, it is closed.
void ServerCore::add(Stream stream) {
  SPATE_ASSERT(&stream.loop() == &loop_, "a server's connections are of its loop");
  ++metrics_.accepted;
  if (options_.http2 && has_agreed_on_http2(stream)) return add_http2(std::move(stream), nullptr);
  auto* connection = new (std::nothrow) Http1Connection(*this, std::move(stream));
  if (connection == nullptr) return;
  link(*connection);
  connection->start();
}

void ServerCore::add_http2(Stream stream, std::unique_ptr<Address> forwarded) {
  auto* connection =
      new (std::nothrow) Http2Connection(*this, std::move(stream), std::move(forwarded));
  if (connection == nullptr) return;
  link(*connection);
  connection->start();
}

void ServerCore::link(ServerConnection& connection) {
  connection.next = connections_;
  if (connections_ != nullptr) connections_->previous = &connection;
  connections_ = &connection;
  ++metrics_.connections;
}

void ServerCore::forget(ServerConnection& connection) {
  if (next_visited_ == &connection) next_visited_ = connection.next;
  if (connection.next != nullptr) connection.next->previous = connection.previous;
  (connection.previous == nullptr ? connections_ : connection.previous->next) = connection.next;
  --metrics_.connections;
  note_one_less();
}

void ServerCore::note_one_less() {
  if (has_drained()) settle_soon();
}

// Any of them may go meanwhile, and so may this.
template <class Visit>
void ServerCore::visit_connections(Visit visit) {
  const Watch watch(lifetime_);
  next_visited_ = connections_;
  while (!watch.is_gone() && next_visited_ != nullptr) {
    ServerConnection& connection = *next_visited_;
    next_visited_ = connection.next;
    visit(connection);
  }
}

// ---- exchanges in progress

bool ServerCore::list(ExchangeState& state) {
  if (state.link.list != nullptr) return false;
  in_progress_.push(state);
  if (!tick_.is_active()) tick_.start(kSecond, kSecond);
  return true;
}

bool ServerCore::unlist(ExchangeState& state) {
  if (state.link.list == nullptr) return false;
  ExchangeList::remove(state);
  return true;
}

void ServerCore::settle_later(ExchangeState& state) {
  unsettled_.push(state);
  settle_soon();
}

void ServerCore::settle_soon() {
  if (!settle_.start(Nanos{0})) settle_.feed();
}

void ServerCore::settle() {
  const Watch watch(lifetime_);
  ExchangeList due;
  due.take_over(unsettled_);
  while (ExchangeState* state = due.pop()) {
    in_progress_.push(*state);
    state->wire()->settle(*state);
    if (watch.is_gone()) return;
  }
  if (has_drained() && on_drained_) {
    grace_.stop();
    std::exchange(on_drained_, {})();
  }
}

void ServerCore::tick() {
  const Watch watch(lifetime_);
  const Nanos now = loop_.now();
  ExchangeList ticking;
  ticking.take_over(in_progress_);
  if (ticking.empty()) return tick_.stop();
  while (ExchangeState* state = ticking.pop()) {
    in_progress_.push(*state);
    state->wire()->on_tick(*state, now);
    if (watch.is_gone()) return;
  }
}

void ServerCore::note_end(const ExchangeState& state, std::error_code error) {
  metrics_.exchanges -= state.is_counted;
  metrics_.received += state.received;
  metrics_.sent += state.sent();
  if (!options_.log) return;
  options_.log({.request = state.request(),
                .status = state.status(),
                .sent = state.sent(),
                .received = state.received,
                .duration = loop_.now() - state.began,
                .error = error});
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

void ServerCore::drain(Nanos grace, std::move_only_function<void()> done) {
  is_draining_ = true;
  on_drained_ = std::move(done);
  drained_by_ = deadline_after(loop_.now(), grace);
  for (Listener& listener : listeners_) listener.close();
  grace_.start(std::min(grace, kSecond));
  for (ServerConnection* each = connections_; each != nullptr; each = each->next) each->on_drain();
  guests_.say_goodbye();
  note_one_less();
}

// Connections without a request first; then whatever there is.
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
  while (Guests* guests = guests_.first_left()) {
    guests->end_one(error);
    if (watch.is_gone()) return;
  }
  visit_connections([error](ServerConnection& connection) { connection.abort(error); });
}

ServerMetrics ServerCore::metrics() const { return metrics_; }

}  // namespace spate::http
