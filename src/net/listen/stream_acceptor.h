// StreamAcceptor: the state behind a Listener. Makes a Stream of each connection, and counts the
// open ones.
#pragma once

#include <cstdint>

#include "core/loop_function.h"
#include "net/listen/acceptor.h"
#include "net/stream/counted_transport.h"

namespace spate {

class StreamAcceptor final : public Acceptor, private CountedTransport::Watcher {
 public:
  std::uint64_t accepted() const { return accepted_; }
  std::size_t connections() const { return pending_->open(); }

 private:
  friend class Acceptor;

  StreamAcceptor(LoopStreams& loop_state, sys::Descriptor socket, const ListenOptions& options,
                 Listener::OnAccept on_accept);
  ~StreamAcceptor() override;

  bool open() override { return pending_ != nullptr && on_accept_.is_linked() && Acceptor::open(); }
  bool is_full() const override { return pending_->open() >= max_connections_; }
  bool hand_over(sys::Descriptor& socket, const Address& peer) override;
  void on_left(Connection& connection) override;
  void on_closed() override { on_accept_.drop(); }

  LoopFunction<void(Stream stream, const Address& peer)> on_accept_;
  CountedTransport* pending_;  // Outlives this object if a Stream does.
  const std::size_t max_connections_;
  std::uint64_t accepted_ = 0;
};

}  // namespace spate
