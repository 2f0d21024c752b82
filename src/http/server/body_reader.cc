#include "http/server/body_reader.h"

#include <memory>

#include "http/server/exchange_state.h"

namespace spate::http {

void BodyReader::on_body(Bytes bytes) {
  if (bytes.size() > most_ - body_.size()) return refuse();
  if (!body_.append(bytes)) exchange_.abort();  // This destroys the reader.
}

void BodyReader::on_body_end(const FieldsView&) {
  const std::unique_ptr<OwnedHandler> self = ExchangeState::of(exchange_)->take_owned();
  const Bytes body = body_.flat(body_.size());
  if (body.size() < body_.size()) return exchange_.abort();
  on_body_(std::move(exchange_), body);
}

void BodyReader::refuse() {
  const std::unique_ptr<OwnedHandler> self = ExchangeState::of(exchange_)->take_owned();
  ExchangeState::of(exchange_)->respond_refusal(
      {Status::content_too_large, "the body is too long"});
}

}  // namespace spate::http
