// CountedTransport: the transport of the connections that one listener has accepted, or one client
// has made, which are counted here. It lives as long as its owner or one of them.
#pragma once

#include <cstddef>

#include "net/stream/socket_transport.h"

namespace spate {

class CountedTransport final : public SocketTransport {
 public:
  // Told when a connection has been closed.
  class Watcher {
   public:
    virtual void on_left(Connection& connection) = 0;

   protected:
    ~Watcher() = default;
  };

  CountedTransport(Hub& hub, Watcher& watcher) : SocketTransport(hub), watcher_(&watcher) {}

  // A connection that is counted. nullptr if memory has run out; `socket` is still the caller's
  // then.
  Connection* adopt(sys::Descriptor& socket) {
    Connection* connection = Connection::adopt(*this, socket);
    if (connection == nullptr) return nullptr;
    ++open_;
    ++connections_;
    return connection;
  }
  // How many are open.
  std::size_t open() const { return open_; }
  // The owner is going.
  void abandon() {
    watcher_ = nullptr;
    if (connections_ == 0) delete this;
  }

  void close(Connection& connection, bool reset) override {
    SocketTransport::close(connection, reset);
    left(connection);
  }
  int release(Connection& connection) override {
    const int fd = SocketTransport::release(connection);
    left(connection);
    return fd;
  }
  void leave(Connection&) override {
    if (--connections_ == 0 && watcher_ == nullptr) delete this;
  }

 private:
  ~CountedTransport() override = default;

  void left(Connection& connection) {
    --open_;
    if (watcher_ != nullptr) watcher_->on_left(connection);
  }

  Watcher* watcher_;
  std::size_t open_ = 0;
  std::size_t connections_ = 0;  // Closed ones that their Stream still holds count, too.
};

}  // namespace spate
