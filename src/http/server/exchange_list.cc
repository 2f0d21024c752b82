#include "http/server/exchange_list.h"

#include <utility>

#include "http/server/exchange_state.h"

namespace spate::http {

namespace {

ExchangeLink& link_of(ExchangeState& state, ExchangeRow row) {
  return state.links[static_cast<std::size_t>(row)];
}

}  // namespace

void ExchangeList::push(ExchangeState& state) {
  remove(state, row_);
  link_of(state, row_) = {.next = first_, .previous = nullptr, .list = this};
  if (first_ != nullptr) link_of(*first_, row_).previous = &state;
  first_ = &state;
}

ExchangeState* ExchangeList::pop() {
  ExchangeState* state = first_;
  if (state != nullptr) remove(*state, row_);
  return state;
}

void ExchangeList::take_over(ExchangeList& other) {
  first_ = std::exchange(other.first_, nullptr);
  for (ExchangeState* state = first_; state != nullptr; state = link_of(*state, row_).next)
    link_of(*state, row_).list = this;
}

void ExchangeList::remove(ExchangeState& state, ExchangeRow row) {
  ExchangeLink& link = link_of(state, row);
  if (link.list == nullptr) return;
  if (link.next != nullptr) link_of(*link.next, row).previous = link.previous;
  (link.previous == nullptr ? link.list->first_ : link_of(*link.previous, row).next) = link.next;
  link = {};
}

}  // namespace spate::http
