// StreamAcceptor: the implementation of a Listener. Makes a Stream of each connection, and counts
// the open ones.
#pragma once

#include <cstdint>

#include "net/listen/acceptor.h"
#include "net/stream/counted_transport.h"

namespace spate {

class StreamAcceptor final : public Acceptor, private CountedTransport::Watcher {
 public:
  std::uint64_t accepted() const { return accepted_; }
  std::size_t connections() const { return newcomers_->open(); }

 private:
  friend class Acceptor;

  StreamAcceptor(Hub& hub, sys::Descriptor socket, const ListenOptions& options,
                 Listener::OnAccept on_accept);
  ~StreamAcceptor() override;

  bool open() override { return newcomers_ != nullptr && Acceptor::open(); }
  bool is_full() const override { return newcomers_->open() >= max_connections_; }
  bool hand_over(sys::Descriptor& socket, const Address& peer) override;
  void on_left(Connection& connection) override;

  Listener::OnAccept on_accept_;
  CountedTransport* newcomers_;  // Outlives us if a Stream does.
  const std::size_t max_connections_;
  std::uint64_t accepted_ = 0;
};

}  // namespace spate
