// MemoryEnd: one end of a connection in memory. Each connection has a transport of its own, which
// holds what the other end has sent.
#pragma once

#include <utility>

#include "net/stream/transport.h"

namespace spate {

class MemoryEnd final : public Transport {
 public:
  // Two connections to each other; nullptrs when memory runs out.
  static std::pair<Connection*, Connection*> make_pair(Hub& hub);

  bool want(Connection& connection, Events events) override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;
  void leave(Connection& connection) override;

 private:
  static constexpr std::size_t kInbox = 64 * 1024;  // As a socket's buffer: full some time.

  using Transport::Transport;
  long receive_own_way(Connection& connection, std::span<std::byte> room) override;
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;
  bool is_readable() const { return !inbox_.empty() || peer_ended_ || peer_reset_; }
  bool is_writable() const { return peer_ == nullptr || peer_->inbox_.size() < kInbox; }
  void tell();
  void tell_reset();

  Connection* connection_ = nullptr;
  MemoryEnd* peer_ = nullptr;  // nullptr once it is closed.
  Buffer inbox_;
  Events wish_ = Events::none;
  bool peer_ended_ = false;
  bool peer_reset_ = false;
  bool is_end_told_ = false;  // The peer's.
};

}  // namespace spate
