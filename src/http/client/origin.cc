#include "http/client/origin.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/client_http1.h"
#include "http/client/client_http2.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"
#include "spate/net/tls.h"

namespace spate::http {

using Ending = ClientConnection::Ending;

namespace {

bool may_be_http2(ClientCore& core, const Route& route) {
  const ClientOptions& options = core.options();
  if (!options.http2 || route.is_http1 || route.sends_absolute_url()) return false;
  return route.is_secure || options.http2_without_tls;
}

}  // namespace

// Assumes HTTP/2 until a connection turns out otherwise, so that a burst of calls makes one
// connection.
Origin::Origin(ClientCore& core, const Route& route)
    : core_(core), route_(route), is_shared_(may_be_http2(core, route)) {}

Origin::~Origin() {
  for (const Ref<ClientConnection>& connection : connections_) connection->leave(Ending::graceful);
}

// ---- calls

void Origin::add(CallState& call, Place place) {
  place == Place::first ? waiting_.push_front(call) : waiting_.push(call);
  call.waits_in = this;
  serve();
}

// Cancels connections that are being made and are not needed any more.
void Origin::remove(CallState& call) {
  waiting_.remove(call);
  call.waits_in = nullptr;
  while (connectors_.size() > wanted()) connectors_.pop_back();
  core_.note_change();
}

void Origin::serve() {
  serve_free();
  make_connections();
}

void Origin::serve_free() {
  while (CallState* call = waiting_.first_for_used()) {
    ClientConnection* connection = free_connection();
    if (connection == nullptr) return;
    if (!carry(*connection, *call) && !connection->has_calls()) drop(*connection, Ending::reset);
  }
}

// Prefers a connection with calls, so that others can become idle and close.
ClientConnection* Origin::free_connection() const {
  for (const Ref<ClientConnection>& connection : connections_)
    if (connection->has_calls() && connection->has_room()) return connection.get();
  return idle_.empty() ? nullptr : idle_.back();
}

bool Origin::carry(ClientConnection& connection, CallState& call) {
  if (!connection.carry(call)) return false;
  std::erase(idle_, &connection);
  waiting_.remove(call);
  call.waits_in = nullptr;
  return true;
}

// How many connections are made concurrently.
std::size_t Origin::wanted() const {
  return is_shared_ ? std::min<std::size_t>(waiting_.size(), 1) : waiting_.size();
}

void Origin::make_connections() {
  while (connectors_.size() < wanted() && core_.make_room(*this)) {
    if (!make_connection()) return;
  }
}

bool Origin::make_connection() {
  std::unique_ptr<Connector> connector(new (std::nothrow)
                                           Connector(core_.loop(), core_.options(), route_, *this));
  if (connector == nullptr) return false;
  connectors_.push_back(std::move(connector));
  return true;
}

// ---- connections

// An older call of another origin, which waits because of the total limit, comes before the calls
// that wait here.
void Origin::release(ClientConnection& connection) {
  CallState* call = waiting_.first_for_used();
  if (core_.is_turn_of_another(call)) return drop(connection, Ending::graceful);
  if (call != nullptr && carry(connection, *call)) return;
  keep(connection);
}

void Origin::keep(ClientConnection& connection) {
  if (!connection.rest(core_.options().idle_timeout)) return drop(connection, Ending::graceful);
  if (connection.has_room()) idle_.push_back(&connection);
  serve();  // For a call that needs a new connection.
}

void Origin::note_room(ClientConnection& connection) {
  if (connection.has_calls()) return serve();
  if (core_.is_turn_of_another(waiting_.first_for_used()))
    return drop(connection, Ending::graceful);
  if (!connection.is_idle()) return keep(connection);
  if (connection.has_room() && std::ranges::find(idle_, &connection) == idle_.end())
    idle_.push_back(&connection);
  serve();
}

void Origin::drop(ClientConnection& connection, Ending ending) {
  std::erase(idle_, &connection);
  const auto at = std::ranges::find(connections_, &connection, &Ref<ClientConnection>::get);
  const Ref<ClientConnection> kept = std::move(*at);
  connections_.erase(at);
  kept->leave(ending);
  core_.note_change();
}

std::optional<Nanos> Origin::oldest_idle() const {
  if (idle_.empty()) return {};
  return idle_.front()->idle_since();
}

void Origin::drop_oldest_idle() { drop(*idle_.front(), Ending::graceful); }

void Origin::on_made(Connector& connector, TlsResult<Stream> stream) {
  const auto at = std::ranges::find(connectors_, &connector, &std::unique_ptr<Connector>::get);
  const std::unique_ptr<Connector> done = std::move(*at);
  connectors_.erase(at);
  if (!stream) return refuse(stream.error().code, std::move(stream.error().text));
  is_shared_ = is_http2(*stream);
  if (is_shared_ && route_.is_http1) return refuse(HttpError::not_upgraded);
  Ref<ClientConnection> made = adopt(std::move(*stream));
  if (!made) return refuse(system_error(ENOMEM));
  ClientConnection& connection = *made;
  connections_.push_back(std::move(made));
  if (waiting_.empty()) return keep(connection);
  if (!carry(connection, *waiting_.first())) drop(connection, Ending::reset);
  serve();
}

// Fails the first waiting call for which no connection can be made.
void Origin::refuse(std::error_code error, std::string text) {
  core_.note_change();
  if (waiting_.size() <= connectors_.size()) return;
  waiting_.first()->explain_failure(std::move(text));
  core_.fail(*waiting_.first(), error);
}

bool Origin::is_http2(const Stream& stream) const {
  if (!route_.is_secure) return may_be_http2(core_, route_);
  const std::optional<TlsInfo> tls = tls_info(stream);
  return tls && tls->alpn == "h2" && core_.options().http2;
}

Ref<ClientConnection> Origin::adopt(Stream stream) {
  Ref<ClientConnection> made;
  if (is_shared_) {
    made = Ref<ClientConnection>(new (std::nothrow) ClientHttp2(*this, std::move(stream)));
  } else {
    made = Ref<ClientConnection>(new (std::nothrow) ClientHttp1(*this, std::move(stream)));
  }
  if (made && !made->start()) made = {};
  return made;
}

}  // namespace spate::http
