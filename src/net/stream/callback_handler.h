// CallbackHandler: a handler made of functions, owned by its connection. When it is replaced or no
// longer needed while one of its functions runs, it is destroyed after that has returned.
#pragma once

#include <utility>

#include "base/abandonable.h"
#include "spate/net/stream.h"

namespace spate {

class CallbackHandler final : public StreamHandler, public Abandonable<CallbackHandler> {
 public:
  explicit CallbackHandler(StreamCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  std::size_t on_data(Bytes bytes) override {
    std::size_t used = bytes.size();
    call([&] {
      if (callbacks_.on_data) used = callbacks_.on_data(bytes);
    });
    return used;
  }
  void on_end() override {
    call([&] {
      if (callbacks_.on_end) callbacks_.on_end();
    });
  }
  void on_descriptors(std::span<const int> descriptors, bool some_lost) override {
    if (!callbacks_.on_descriptors) return close_descriptors(descriptors);
    call([&] { callbacks_.on_descriptors(descriptors, some_lost); });
  }
  void on_connected() override {
    call([&] {
      if (callbacks_.on_connected) callbacks_.on_connected();
    });
  }
  void on_drained() override {
    call([&] {
      if (callbacks_.on_drained) callbacks_.on_drained();
    });
  }
  void on_closed(std::error_code error) override {
    call([&] {
      if (callbacks_.on_closed) callbacks_.on_closed(error);
    });
  }

 private:
  StreamCallbacks callbacks_;
};

}  // namespace spate
