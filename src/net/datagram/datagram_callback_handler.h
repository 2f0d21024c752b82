// DatagramCallbackHandler: a handler made of functions, owned by its socket. When it is replaced
// while one of its functions runs, it is destroyed after that has returned.
#pragma once

#include <memory>
#include <utility>

#include "base/abandonable.h"
#include "spate/net/datagram.h"

namespace spate {

class DatagramCallbackHandler final : public DatagramHandler,
                                      public Abandonable<DatagramCallbackHandler> {
 public:
  explicit DatagramCallbackHandler(DatagramCallbacks callbacks)
      : callbacks_(std::move(callbacks)) {}

  void on_packets(std::span<const Packet> packets) override {
    call([&] {
      if (callbacks_.on_packets) callbacks_.on_packets(packets);
    });
  }
  void on_error(std::error_code error) override {
    call([&] {
      if (callbacks_.on_error) callbacks_.on_error(error);
    });
  }
  void on_writable() override {
    call([&] {
      if (callbacks_.on_writable) callbacks_.on_writable();
    });
  }

 private:
  DatagramCallbacks callbacks_;
};

struct DatagramCallbackHandlerEnd {
  void operator()(DatagramCallbackHandler* handler) const { handler->abandon(); }
};

}  // namespace spate
