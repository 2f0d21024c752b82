// CallbackHandler: a handler made of functions, which its connection owns. One that has been
// replaced stays as long as the connection: its function may be the one that is running.
#pragma once

#include <memory>
#include <utility>

#include "spate/net/stream.h"

namespace spate {

class CallbackHandler final : public StreamHandler {
 public:
  explicit CallbackHandler(StreamCallbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void keep(std::unique_ptr<CallbackHandler> replaced) { replaced_ = std::move(replaced); }

  std::size_t on_data(Bytes bytes) override {
    return callbacks_.on_data ? callbacks_.on_data(bytes) : bytes.size();
  }
  void on_end() override {
    if (callbacks_.on_end) callbacks_.on_end();
  }
  void on_descriptors(std::span<const int> descriptors, bool some_lost) override {
    if (!callbacks_.on_descriptors) return close_descriptors(descriptors);
    callbacks_.on_descriptors(descriptors, some_lost);
  }
  void on_connected() override {
    if (callbacks_.on_connected) callbacks_.on_connected();
  }
  void on_drained() override {
    if (callbacks_.on_drained) callbacks_.on_drained();
  }
  void on_closed(std::error_code error) override {
    if (callbacks_.on_closed) callbacks_.on_closed(error);
  }

 private:
  StreamCallbacks callbacks_;
  std::unique_ptr<CallbackHandler> replaced_;
};

}  // namespace spate
