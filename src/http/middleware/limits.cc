// BodyLimit, ResponseTimeout.
#include <memory>
#include <new>
#include <utility>

#include "http/server/exchange_state.h"
#include "spate/http/middleware.h"
#include "spate/timer.h"

namespace spate::http {

void BodyLimit::on_request(Exchange exchange) {
  if (ExchangeState::of(exchange)->limit_body(most_)) next_.on_request(std::move(exchange));
}

// The exchange owns the timer, so the timer's exchange exists. After the exchange has begun a
// response, or its connection closed, the response of the timer is refused.
void ResponseTimeout::on_request(Exchange exchange) {
  ExchangeState* state = ExchangeState::of(exchange);
  std::unique_ptr<Timer> timer(new (std::nothrow) Timer(exchange.loop(), [state] {
    state->respond_refusal({Status::service_unavailable, "the response took too long"});
  }));
  if (timer == nullptr || !timer->start(timeout_)) return;
  if (exchange.on_end([owned = std::move(timer)](const AccessRecord&) {}))
    next_.on_request(std::move(exchange));
}

}  // namespace spate::http
