#include "http/server/exchange_pool.h"

#include <new>

namespace spate::http {

ExchangePool::~ExchangePool() {
  while (ExchangeState* state = free_.pop()) delete state;
}

ExchangeState* ExchangePool::take() {
  ExchangeState* state = free_.pop();
  if (state == nullptr) {
    state = new (std::nothrow) ExchangeState(*this);
    if (state == nullptr) return nullptr;
  } else {
    --kept_;
  }
  ++in_use_;
  return state;
}

void ExchangePool::give_back(ExchangeState* state) {
  --in_use_;
  if (is_abandoned_ || kept_ == kMostKept) {
    delete state;
  } else {
    state->reset();
    free_.push(*state);
    ++kept_;
  }
  if (is_abandoned_ && in_use_ == 0) delete this;
}

void ExchangePool::abandon() {
  is_abandoned_ = true;
  if (in_use_ == 0) delete this;
}

}  // namespace spate::http
