// CallList: a FIFO list of calls that wait for a connection.
#pragma once

#include <cstddef>
#include <utility>

#include "http/client/call_state.h"

namespace spate::http {

class CallList {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  CallState* first() const { return first_; }
  // Returns the first call that may use a connection that was used before.
  CallState* first_for_used() const {
    CallState* call = first_;
    while (call != nullptr && call->needs_fresh()) call = call->next_waiting;
    return call;
  }

  void push(CallState& call) {
    call.previous_waiting = last_;
    call.next_waiting = nullptr;
    (last_ == nullptr ? first_ : last_->next_waiting) = &call;
    last_ = &call;
    ++size_;
  }
  void push_front(CallState& call) {
    call.previous_waiting = nullptr;
    call.next_waiting = first_;
    (first_ == nullptr ? last_ : first_->previous_waiting) = &call;
    first_ = &call;
    ++size_;
  }
  void remove(CallState& call) {
    (call.previous_waiting == nullptr ? first_ : call.previous_waiting->next_waiting) =
        call.next_waiting;
    (call.next_waiting == nullptr ? last_ : call.next_waiting->previous_waiting) =
        call.previous_waiting;
    --size_;
  }

 private:
  CallState* first_ = nullptr;
  CallState* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::http
