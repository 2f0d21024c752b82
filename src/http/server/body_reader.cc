#include "http/server/body_reader.h"

#include <memory>

#include "http/server/exchange_state.h"

namespace spate::http {

void BodyReader::on_body(Bytes bytes) {
  if (bytes.size() > most_ - body_.size()) return refuse();
  if (!body_.append(bytes)) exchange_.abort();  // Which destroys this.
}

void BodyReader::on_body_end(const FieldsView&) {
  const std::unique_ptr<BodyReader> self = ExchangeState::of(exchange_)->take_reader();
  const Bytes body = body_.flat(body_.size());
  if (body.size() < body_.size()) return exchange_.abort();
  on_body_(std::move(exchange_), body);
}

void BodyReader::refuse() {
  const std::unique_ptr<BodyReader> self = ExchangeState::of(exchange_)->take_reader();
  exchange_.respond(Status::content_too_large, "the body is too long\n");
}

}  // namespace spate::http
