// NamedConnect: a connection to a host by its name (RFC 8305). Both families are asked for at once,
// and what they bring is raced.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/connect/connect_race.h"
#include "net/names/resolver.h"

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

  OnSocket callback_;
  ConnectOptions options_;
  ConnectRace race_;
  Timer delay_;  // For the addresses that go first, when the others are there.
};

}  // namespace spate
