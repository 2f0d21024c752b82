// NamedConnect: connects to a host by name (RFC 8305). Both families are resolved in parallel, and
// their addresses are raced.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/connect/connect_race.h"
#include "net/dns/resolver.h"

namespace spate {

class NamedConnect final : public ConnectAttempt, private Question {
 public:
  NamedConnect(Loop& loop, std::string_view host, std::uint16_t port, OnSocket callback,
               const ConnectOptions& options);

  void start();
  bool is_pending() const override { return static_cast<bool>(callback_); }

 private:
  void on_news() override;
  void on_end(Result<sys::Descriptor> result);

  LoopFunction<void(Result<sys::Descriptor>)> callback_;
  ConnectOptions options_;
  ConnectRace race_;
  Timer delay_;  // The resolution delay: how long the other family waits for the preferred one.
};

}  // namespace spate
