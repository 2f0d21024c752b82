// ExchangeKeeper: not for programs. Keeps the request of an exchange for the report of an
// exception, also when the Exchange was moved or destroyed. coro::handler() needs it.
#pragma once

#include <utility>

#include "spate/export.h"
#include "spate/http/exchange.h"

namespace spate::http {

class SPATE_EXPORT ExchangeKeeper {
 public:
  explicit ExchangeKeeper(const Exchange& exchange);
  ExchangeKeeper(ExchangeKeeper&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  ExchangeKeeper& operator=(ExchangeKeeper&&) = delete;
  ~ExchangeKeeper();

  // Called inside a catch block: as if an exception had left the handler of the exchange.
  void fail() noexcept;

 private:
  ExchangeState* state_;
};

}  // namespace spate::http
