#include "http/server/server_core.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/server/http1_connection.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate::http {

namespace {

constexpr Nanos kSecond{1'000'000'000};

bool is_valid(const ServerOptions& options) {
  return options.max_head > 0 && options.max_head <= 65'535 && options.max_request_line > 0 &&
         options.max_fields > 0 && options.max_fields <= kMostHeadFields &&
         options.max_requests > 0;
}

}  // namespace

// ---- how it begins and ends

Result<std::unique_ptr<ServerCore>> ServerCore::create(Loop& loop, Service* service,
                                                       OnRequest on_request,
                                                       ServerOptions options) {
  if (!is_valid(options)) return std::unexpected(std::error_code(EINVAL, std::system_category()));
  std::unique_ptr<ServerCore> core(
      new (std::nothrow) ServerCore(loop, service, std::move(on_request), std::move(options)));
  if (core != nullptr) core->pool_ = new (std::nothrow) ExchangePool(loop);
  if (core == nullptr || core->pool_ == nullptr)
    return std::unexpected(std::error_code(ENOMEM, std::system_category()));
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
      grace_(loop, [this] { end_grace(); }) {}

ServerCore::~ServerCore() {
  while (connections_ != nullptr) {
    Http1Connection* connection = connections_;
    forget(*connection);
    delete connection;
  }
  if (pool_ != nullptr) pool_->abandon();
}

Result<Address> ServerCore::listen(const Address& address, const ListenOptions& options) {
  Result<Listener> listener = Listener::create(
      loop_, address, [this](Stream stream, const Address&) { add(std::move(stream)); }, options);
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  return listeners_.back().address();
}

void ServerCore::serve(Exchange exchange) {
  ++metrics_.requests;
  ++metrics_.exchanges;
  ExchangeState::of(exchange)->is_counted = true;
  if (service_ != nullptr) return service_->on_request(std::move(exchange));
  on_request_(std::move(exchange));
}

// ---- connections

// Out of memory, it is closed.
void ServerCore::add(Stream stream) {
  SPATE_ASSERT(&stream.loop() == &loop_, "a server's connections are of its loop");
  auto* connection = new (std::nothrow) Http1Connection(*this, std::move(stream));
  if (connection == nullptr) return;
  ++metrics_.accepted;
  link(*connection);
  connection->start();
}

void ServerCore::link(Http1Connection& connection) {
  connection.next = connections_;
  if (connections_ != nullptr) connections_->previous = &connection;
  connections_ = &connection;
  ++metrics_.connections;
}

void ServerCore::forget(Http1Connection& connection) {
  if (next_visited_ == &connection) next_visited_ = connection.next;
  if (connection.next != nullptr) connection.next->previous = connection.previous;
  (connection.previous == nullptr ? connections_ : connection.previous->next) = connection.next;
  --metrics_.connections;
  if (is_draining_ && connections_ == nullptr && !settle_.start(Nanos{0})) settle_.feed();
}

// Any of them may go meanwhile, and so may this.
template <class Visit>
void ServerCore::visit_connections(Visit visit) {
  const Watch watch(lifetime_);
  next_visited_ = connections_;
  while (!watch.is_gone() && next_visited_ != nullptr) {
    Http1Connection& connection = *next_visited_;
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
  if (is_draining_ && connections_ == nullptr && on_drained_) {
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

std::string_view ServerCore::date() {
  const std::int64_t second = loop_.now() / kSecond;
  if (second != date_second_) {
    date_second_ = second;
    format_date(std::chrono::floor<std::chrono::seconds>(loop_.wall_now()), date_);
  }
  return {date_, kDateSize};
}

// ---- drain

void ServerCore::drain(Nanos grace, std::move_only_function<void()> done) {
  is_draining_ = true;
  on_drained_ = std::move(done);
  drained_by_ = deadline_after(loop_.now(), grace);
  for (Listener& listener : listeners_) listener.close();
  grace_.start(std::min(grace, kSecond));
  if (connections_ == nullptr && !settle_.start(Nanos{0})) settle_.feed();
}

// Connections without a request first; then whatever there is.
void ServerCore::end_grace() {
  const Nanos left = drained_by_ - loop_.now();
  if (left > Nanos{0}) {
    grace_.start(left);
    visit_connections([](Http1Connection& connection) {
      if (connection.is_idle()) connection.close();
    });
  } else {
    visit_connections([](Http1Connection& connection) { connection.abort(Error::deadline); });
  }
}

ServerMetrics ServerCore::metrics() const { return metrics_; }

}  // namespace spate::http
