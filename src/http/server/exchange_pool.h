// ExchangePool: the ExchangeStates of one server. Unused ones are kept for later requests. It
// exists while its server or one of the states does.
#pragma once

#include <cstddef>

#include "http/server/exchange_state.h"
#include "http/server/response_coding.h"

namespace spate::http {

class ServerCore;

class ExchangePool {
 public:
  ExchangePool(ServerCore& server, Loop& loop, int compression_level)
      : server_(&server), loop_(loop), compressors_(compression_level) {}

  // Returns nullptr after abandon().
  ServerCore* server() const { return server_; }
  Loop& loop() const { return loop_; }
  Compressors& compressors() { return compressors_; }
  // Returns nullptr when memory runs out.
  ExchangeState* take();
  void give_back(ExchangeState* state);
  // Called by the server's destructor. The last state destroys the pool.
  void abandon();

 private:
  static constexpr std::size_t kMostKept = 64;

  ~ExchangePool();

  ServerCore* server_;
  Loop& loop_;
  Compressors compressors_;
  ExchangeState* free_[kMostKept];
  std::size_t kept_ = 0;
  std::size_t in_use_ = 0;
  bool is_abandoned_ = false;
};

}  // namespace spate::http
