#include "http/server/exchange_pool.h"

#include <new>

namespace spate::http {

ExchangePool::~ExchangePool() {
  while (kept_ != 0) delete free_[--kept_];
}

ExchangeState* ExchangePool::take() {
  ExchangeState* state = kept_ != 0 ? free_[--kept_] : new (std::nothrow) ExchangeState(*this);
  in_use_ += state != nullptr;
  return state;
}

void ExchangePool::give_back(ExchangeState* state) {
  --in_use_;
  if (is_abandoned_ || kept_ == kMostKept) {
    delete state;
  } else {
    state->reset();
    free_[kept_++] = state;
  }
  if (is_abandoned_ && in_use_ == 0) delete this;
}

void ExchangePool::abandon() {
  server_ = nullptr;
  is_abandoned_ = true;
  if (in_use_ == 0) delete this;
}

}  // namespace spate::http
