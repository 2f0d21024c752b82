// DatagramCallbackHandler: a handler made of functions, owned by its socket. One that was replaced
// is kept as long as the socket: its function may be running.
#pragma once

#include <memory>
#include <utility>

#include "spate/net/datagram.h"

namespace spate {

class DatagramCallbackHandler final : public DatagramHandler {
 public:
  explicit DatagramCallbackHandler(DatagramCallbacks callbacks)
      : callbacks_(std::move(callbacks)) {}
  void keep(std::unique_ptr<DatagramCallbackHandler> replaced) { replaced_ = std::move(replaced); }

  void on_packets(std::span<const Packet> packets) override {
    if (callbacks_.on_packets) callbacks_.on_packets(packets);
  }
  void on_error(std::error_code error) override {
    if (callbacks_.on_error) callbacks_.on_error(error);
  }
  void on_writable() override {
    if (callbacks_.on_writable) callbacks_.on_writable();
  }

 private:
  DatagramCallbacks callbacks_;
  std::unique_ptr<DatagramCallbackHandler> replaced_;
};

}  // namespace spate
