// Origin: the connections of one route, those being made, and the calls that wait for one.
//
// Its functions call no user code, except on_made() as its last action.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ref.h"
#include "http/client/client_connection.h"
#include "http/client/connector.h"
#include "http/client/route.h"
#include "http/client/waiting_calls.h"

namespace spate::http {

class ClientCore;

class Origin final : public ConnectorUser {
 public:
  Origin(ClientCore& core, const Route& route);
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  // Closes all connections.
  ~Origin();

  ClientCore& core() const { return core_; }

  // ---- calls

  enum class Place : std::uint8_t { last, first };
  void add(CallState& call, Place place);
  // Removes a call that waits.
  void remove(CallState& call);
  const WaitingCalls& waiting() const { return waiting_; }
  // Assigns connections to the waiting calls, and makes new ones as allowed.
  void serve();

  // ---- connections

  std::size_t size() const { return connections_.size() + connectors_.size(); }
  std::size_t idle() const { return idle_.size(); }
  bool is_empty() const { return size() == 0 && waiting_.empty(); }
  // Called when the connection is free for another call.
  void release(ClientConnection& connection);
  // Called when an HTTP/2 connection has room for a call, or has become idle.
  void note_room(ClientConnection& connection);
  void drop(ClientConnection& connection, ClientConnection::Ending ending);
  // Returns since when the least recently used idle connection is idle.
  std::optional<Nanos> oldest_idle() const;
  void drop_oldest_idle();

  void on_made(Connector& connector, TlsResult<Stream> stream) override;

 private:
  bool carry(ClientConnection& connection, CallState& call);
  void keep(ClientConnection& connection);
  ClientConnection* free_connection() const;
  void serve_free();
  std::size_t wanted() const;
  bool is_http2(const Stream& stream) const;
  Ref<ClientConnection> adopt(Stream stream);
  void refuse(std::error_code error, std::string text = {});
  void make_connections();
  bool make_connection();

  ClientCore& core_;
  const Route route_;
  bool is_shared_;  // Its connections are, or may be, HTTP/2.
  std::vector<Ref<ClientConnection>> connections_;
  std::vector<ClientConnection*> idle_;  // The most recently used is last.
  std::vector<std::unique_ptr<Connector>> connectors_;
  WaitingCalls waiting_;
};

}  // namespace spate::http
