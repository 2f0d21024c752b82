// SocketTransport, FileTransport: move bytes through sockets, and through pipes and other
// descriptors that are read and written as files. The loop reports readiness.
#pragma once

#include "net/stream/transport.h"

namespace spate {

// The common base: a descriptor that the loop watches.
class ReadinessTransport : public Transport {
 public:
  using Transport::Transport;
  bool is_bare() const final { return true; }
  bool want(Connection& connection, Events events) final;
  void close(Connection& connection, bool reset) override;
  int release(Connection& connection) override;

 protected:
  ~ReadinessTransport() override = default;

 private:
  [[gnu::noinline]] bool want_otherwise(FdNode& node, Events events);
};

class SocketTransport : public ReadinessTransport {
 public:
  explicit SocketTransport(LoopStreams& loop_state) : ReadinessTransport(loop_state, Way::socket) {}
  long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size) override;
  long send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                        std::span<const int> descriptors) override;
  long receive_descriptors(Connection& connection, std::span<std::byte> room,
                           ArrivedDescriptors& arrived) override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;

 private:
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;
};

class FileTransport final : public ReadinessTransport {
 public:
  using ReadinessTransport::ReadinessTransport;
  bool shut_down(Connection& connection) override;

 private:
  long receive_own_way(Connection& connection, std::span<std::byte> room) override;
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;
};

}  // namespace spate
