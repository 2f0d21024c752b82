#include "http/server/exchange_list.h"

#include <utility>

#include "http/server/exchange_state.h"

namespace spate::http {

void ExchangeList::push(ExchangeState& state) {
  remove(state);
  state.link = {.next = first_, .previous = nullptr, .list = this};
  if (first_ != nullptr) first_->link.previous = &state;
  first_ = &state;
}

ExchangeState* ExchangeList::pop() {
  ExchangeState* state = first_;
  if (state != nullptr) remove(*state);
  return state;
}

void ExchangeList::take_over(ExchangeList& other) {
  first_ = std::exchange(other.first_, nullptr);
  for (ExchangeState* state = first_; state != nullptr; state = state->link.next)
    state->link.list = this;
}

void ExchangeList::remove(ExchangeState& state) {
  ExchangeLink& link = state.link;
  if (link.list == nullptr) return;
  if (link.next != nullptr) link.next->link.previous = link.previous;
  (link.previous == nullptr ? link.list->first_ : link.previous->link.next) = link.next;
  link = {};
}

}  // namespace spate::http
