#include "http/client/origin.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/client/client_core.h"
#include "http/client/client_http1.h"
#include "http/codec/system_error.h"

namespace spate::http {

using Ending = ClientConnection::Ending;

Origin::~Origin() {
  for (const Ref<ClientConnection>& connection : connections_) connection->leave(Ending::graceful);
}

// ---- calls

void Origin::add(CallState& call, Place place) {
  place == Place::first ? waiting_.push_front(call) : waiting_.push(call);
  call.waits_in = this;
  serve();
}

// What is being made for it is given up.
void Origin::remove(CallState& call) {
  waiting_.remove(call);
  call.waits_in = nullptr;
  while (connectors_.size() > waiting_.size()) connectors_.pop_back();
  core_.note_change();
}

void Origin::serve() {
  serve_idle();
  make_connections();
}

void Origin::serve_idle() {
  while (!idle_.empty()) {
    CallState* call = waiting_.first_for_used();
    if (call == nullptr) return;
    ClientConnection& connection = *idle_.back();
    idle_.pop_back();
    if (!carry(connection, *call)) drop(connection, Ending::reset);
  }
}

bool Origin::carry(ClientConnection& connection, CallState& call) {
  if (!connection.carry(call)) return false;
  waiting_.remove(call);
  call.waits_in = nullptr;
  return true;
}

void Origin::make_connections() {
  while (connectors_.size() < waiting_.size() && core_.make_room(*this)) {
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

// Who has waited longer elsewhere, for want of connections, comes before those who wait here.
void Origin::release(ClientConnection& connection) {
  CallState* call = waiting_.first_for_used();
  if (core_.is_turn_of_another(call)) return drop(connection, Ending::graceful);
  if (call != nullptr && carry(connection, *call)) return;
  keep(connection);
}

void Origin::keep(ClientConnection& connection) {
  if (!connection.rest(core_.options().idle_timeout)) return drop(connection, Ending::graceful);
  idle_.push_back(&connection);
  serve();  // One that needs a fresh one.
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

void Origin::on_made(Connector& connector, Result<Stream> stream) {
  const auto at = std::ranges::find(connectors_, &connector, &std::unique_ptr<Connector>::get);
  const std::unique_ptr<Connector> done = std::move(*at);
  connectors_.erase(at);
  if (!stream) {
    core_.note_change();
    if (waiting_.size() > connectors_.size()) core_.fail(*waiting_.first(), stream.error());
    return;
  }
  Ref<ClientConnection> made(new (std::nothrow) ClientHttp1(*this, std::move(*stream)));
  if (!made) return core_.note_change();
  ClientConnection& connection = *made;
  connections_.push_back(std::move(made));
  connection.start();
  if (waiting_.empty()) return keep(connection);
  if (!carry(connection, *waiting_.first())) drop(connection, Ending::reset);
}

}  // namespace spate::http
