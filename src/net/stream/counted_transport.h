// CountedTransport: the transport of the connections of one listener or client, which it counts. It
// exists while its owner or one of them does.
#pragma once

#include <cstddef>

#include "net/stream/socket_transport.h"

namespace spate {

class CountedTransport final : public SocketTransport {
 public:
  // Notified when a connection was closed.
  class Watcher {
   public:
    virtual void on_left(Connection& connection) = 0;

   protected:
    ~Watcher() = default;
  };

  CountedTransport(LoopStreams& loop_state, Watcher& watcher)
      : SocketTransport(loop_state), watcher_(&watcher) {}

  // Makes a counted connection. nullptr when memory runs out; `socket` is still the caller's then.
  Connection* adopt(sys::Descriptor& socket) {
    Connection* connection = Connection::adopt(*this, socket);
    if (connection == nullptr) return nullptr;
    ++open_;
    ++connections_;
    return connection;
  }
  // Returns the number of open connections.
  std::size_t open() const { return open_; }
  // Called by the owner's destructor.
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
  std::size_t connections_ = 0;  // Includes closed ones whose Stream still exists.
};

}  // namespace spate
