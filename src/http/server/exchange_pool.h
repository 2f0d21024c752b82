// ExchangePool: the ExchangeStates of one server. Those that are not in use are kept for the next
// requests. It lives as long as its server or one of them.
#pragma once

#include <cstddef>

#include "http/server/answer_coding.h"
#include "http/server/exchange_state.h"

namespace spate::http {

class ExchangePool {
 public:
  ExchangePool(Loop& loop, int compression_level) : loop_(loop), compressors_(compression_level) {}

  Loop& loop() const { return loop_; }
  Compressors& compressors() { return compressors_; }
  // nullptr when memory runs out.
  ExchangeState* take();
  void give_back(ExchangeState* state);
  // The server is going.
  void abandon();

 private:
  static constexpr std::size_t kMostKept = 64;

  ~ExchangePool();

  Loop& loop_;
  Compressors compressors_;
  ExchangeState* free_[kMostKept];
  std::size_t kept_ = 0;
  std::size_t in_use_ = 0;
  bool is_abandoned_ = false;
};

}  // namespace spate::http
