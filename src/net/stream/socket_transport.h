// SocketTransport, FileTransport: bytes through the kernel's sockets, and through pipes and
// whatever else is read and written as a file. Readiness comes from the loop.
#pragma once

#include "net/stream/transport.h"

namespace spate {

// What the two have in common: a descriptor that the loop watches.
class ReadinessTransport : public Transport {
 public:
  using Transport::Transport;
  bool is_bare() const final { return true; }
  bool want(Connection& connection, Events events) final;
  void close(Connection& connection, bool reset) override;
  int release(Connection& connection) override;

 protected:
  ~ReadinessTransport() override = default;
};

class SocketTransport : public ReadinessTransport {
 public:
  using ReadinessTransport::ReadinessTransport;
  long receive(Connection& connection, std::span<std::byte> room) override;
  long send(Connection& connection, std::span<const Bytes> pieces) override;
  long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size) override;
  long send_descriptors(Connection& connection, std::span<const Bytes> pieces,
                        std::span<const int> descriptors) override;
  long receive_descriptors(Connection& connection, std::span<std::byte> room,
                           ArrivedDescriptors& arrived) override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;
};

class FileTransport final : public ReadinessTransport {
 public:
  using ReadinessTransport::ReadinessTransport;
  long receive(Connection& connection, std::span<std::byte> room) override;
  long send(Connection& connection, std::span<const Bytes> pieces) override;
  bool shut_down(Connection& connection) override;
};

}  // namespace spate
