// The handler of an End: passes each call on, with the handler that received it.
#pragma once

#include "chaos/end.h"

namespace spate::chaos {

class End::Handler final : public StreamHandler {
 public:
  explicit Handler(End& end) : end_(end) {}

  std::size_t on_data(Bytes bytes) override { return end_.on_data(*this, bytes); }
  void on_end() override { end_.on_end(*this); }
  void on_descriptors(std::span<const int> fds, bool some_lost) override {
    end_.on_descriptors(*this, fds, some_lost);
  }
  void on_connected() override { end_.on_connected(*this); }
  void on_drained() override { end_.on_drained(*this); }
  void on_closed(std::error_code error) override { end_.on_closed(*this, error); }

  bool is_retired = false;  // It was replaced since.

 private:
  End& end_;
};

}  // namespace spate::chaos
