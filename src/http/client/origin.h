// Origin: the connections of one route, those that are being made, and the calls that wait for one.
//
// Its functions call no user, but for on_made() at its end.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "http/client/call_list.h"
#include "http/client/client_connection.h"
#include "http/client/connector.h"
#include "http/client/ref.h"
#include "http/client/route.h"

namespace spate::http {

class ClientCore;

class Origin final : public ConnectorUser {
 public:
  Origin(ClientCore& core, const Route& route);
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  // Closes all.
  ~Origin();

  ClientCore& core() const { return core_; }

  // ---- calls

  enum class Place : std::uint8_t { last, first };
  void add(CallState& call, Place place);
  // It waits no more, and has got nothing.
  void remove(CallState& call);
  const CallList& waiting() const { return waiting_; }
  // Those that wait get what there is, and what may be made for them.
  void serve();

  // ---- connections

  std::size_t size() const { return connections_.size() + connectors_.size(); }
  std::size_t idle() const { return idle_.size(); }
  bool is_empty() const { return size() == 0 && waiting_.empty(); }
  // It is free for another call.
  void release(ClientConnection& connection);
  // Of HTTP/2: it may take one more, or has none any more.
  void note_room(ClientConnection& connection);
  void drop(ClientConnection& connection, ClientConnection::Ending ending);
  // Since when the one is idle that was used the longest time ago.
  std::optional<Nanos> oldest_idle() const;
  void drop_oldest_idle();

  void on_made(Connector& connector, Result<Stream> stream) override;

 private:
  bool carry(ClientConnection& connection, CallState& call);
  void keep(ClientConnection& connection);
  ClientConnection* free_connection() const;
  void serve_free();
  std::size_t wanted() const;
  bool is_http2(const Stream& stream) const;
  Ref<ClientConnection> adopt(Stream stream);
  void refuse(std::error_code error);
  void make_connections();
  bool make_connection();

  ClientCore& core_;
  const Route route_;
  bool is_shared_;  // Its connections are, or may be: they are of HTTP/2.
  std::vector<Ref<ClientConnection>> connections_;
  std::vector<ClientConnection*> idle_;  // The last has been used last.
  std::vector<std::unique_ptr<Connector>> connectors_;
  CallList waiting_;
};

}  // namespace spate::http
