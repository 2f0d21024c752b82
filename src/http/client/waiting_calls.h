// WaitingCalls: the calls that wait for a connection, in order.
#pragma once

#include "base/fifo.h"
#include "http/client/call_state.h"

namespace spate::http {

class WaitingCalls : public Fifo<CallState, Waiting> {
 public:
  // Returns the first call that may use a connection that was used before.
  CallState* first_for_used() const {
    CallState* call = first();
    while (call != nullptr && call->needs_fresh()) call = after(*call);
    return call;
  }
};

}  // namespace spate::http
