// MemoryEnd: one end of a connection in memory. Each connection has its own transport, which holds
// the bytes sent by the other end.
#pragma once

#include <utility>

#include "net/stream/transport.h"

namespace spate {

class MemoryEnd final : public Transport {
 public:
  // Makes two connections to each other; nullptrs when memory runs out.
  static std::pair<Connection*, Connection*> make_pair(LoopStreams& loop_state);

  bool is_quiet(Connection&) const override { return !is_readable(); }
  bool want(Connection& connection, Events events) override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;
  void leave(Connection& connection) override;

 private:
  static constexpr std::size_t kInbox = 64 * 1024;  // Limited, as a socket's buffer is.

  using Transport::Transport;
  long receive_own_way(Connection& connection, std::span<std::byte> room) override;
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;
  bool is_readable() const { return !inbox_.empty() || peer_ended_ || peer_reset_; }
  bool is_writable() const { return peer_ == nullptr || peer_->inbox_.size() < kInbox; }
  void tell();
  void report_reset();

  Connection* connection_ = nullptr;
  MemoryEnd* peer_ = nullptr;  // nullptr once it is closed.
  Buffer inbox_;
  Events wish_ = Events::none;
  bool peer_ended_ = false;
  bool peer_reset_ = false;
  bool is_end_reported_ = false;  // The peer's end was reported.
};

}  // namespace spate
