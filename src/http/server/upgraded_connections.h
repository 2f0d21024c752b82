// UpgradedConnections: connections that were upgraded, for instance to WebSocket, and that the
// server's drain must end as well. They may outlive the server.
#pragma once

#include <system_error>

#include "base/list.h"

namespace spate::http {

class ServerCore;

class UpgradedConnections : public Linked<UpgradedConnections> {
 public:
  // `host` may be nullptr: no server.
  explicit UpgradedConnections(ServerCore* host);
  UpgradedConnections(const UpgradedConnections&) = delete;
  UpgradedConnections& operator=(const UpgradedConnections&) = delete;

  ServerCore* host() const { return host_; }

  // ---- called by the server

  virtual bool are_gone() const = 0;
  // Announces the end of the server to the peers. Calls no user code.
  virtual void say_goodbye() = 0;
  // Resets one of the remaining connections and reports `error`. May destroy this.
  virtual void end_one(std::error_code error) = 0;

 protected:
  virtual ~UpgradedConnections();
  // Must be called when the last connection has ended.
  void report_closed_all();

 private:
  friend class UpgradedList;
  ServerCore* host_;
};

// The UpgradedConnections of one server.
class UpgradedList {
 public:
  UpgradedList() = default;
  UpgradedList(const UpgradedList&) = delete;
  UpgradedList& operator=(const UpgradedList&) = delete;

  bool are_gone() const { return first_open() == nullptr; }
  UpgradedConnections* first_open() const;
  void say_goodbye();
  // Called by the server's destructor: detaches all of them.
  void disown();

 private:
  friend class UpgradedConnections;
  void add(UpgradedConnections& upgraded) { all_.push_front(upgraded); }

  List<UpgradedConnections> all_;
};

}  // namespace spate::http
