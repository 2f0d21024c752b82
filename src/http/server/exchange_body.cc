// ExchangeState: reading the body of the request, and its handler.
#include <utility>

#include "http/server/exchange_state.h"
#include "http/server/owned_handler.h"
#include "http/server/server_core.h"
#include "spate/loop.h"

namespace spate::http {

bool ExchangeState::start(ExchangeHandler& handler) {
  if (wire_ == nullptr) return false;
  handler_ = &handler;
  body_.start(loop().now());
  wire_->read_body(*this);
  return true;
}

// The reader is also called for a request without a body. If Content-Length shows that the body is
// too long, the body is not asked for.
bool ExchangeState::start(std::unique_ptr<OwnedHandler> reader, std::size_t most) {
  if (wire_ == nullptr) return false;
  if (body_.has_more_than(most)) {
    respond_refusal(IncomingBody::kTooLong);
    return false;
  }
  body_.expect_end();
  owned_.swap(reader);  // The destructor of the old one may use the exchange.
  return start(*owned_);
}

void ExchangeState::own(std::unique_ptr<OwnedHandler> handler) {
  owned_.swap(handler);
  handler_ = owned_.get();
}

std::unique_ptr<OwnedHandler> ExchangeState::take_owned() {
  handler_ = nullptr;
  return std::move(owned_);
}

void ExchangeState::pause() {
  if (wire_ != nullptr && body_.pause()) wire_->pause(*this);
}

void ExchangeState::resume() {
  if (wire_ != nullptr && body_.resume(loop().now())) wire_->read_body(*this);
}

bool ExchangeState::pass_on(Bytes piece) {
  if (!body_.count(piece.size(), loop().now())) return false;
  if (!body_.is_discarded()) tell([piece](ExchangeHandler& handler) { handler.on_body(piece); });
  return true;
}

bool ExchangeState::end_body() {
  return !body_.end() ||
         tell([this](ExchangeHandler& handler) { handler.on_body_end(body_.trailers()); });
}

bool ExchangeState::limit_body(std::uint64_t most) {
  if (body_.limit(most)) return true;
  respond_refusal(IncomingBody::kTooLong);
  return false;
}

bool ExchangeState::is_body_slow(Nanos now) const {
  const ServerOptions& options = wire_->server().options();
  return body_.is_slow(options.body_timeout, options.min_body_rate, now);
}

}  // namespace spate::http
