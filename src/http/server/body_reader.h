// BodyReader: receives a whole body for read_body(). Its exchange owns it; it holds the Exchange
// until the end of the body.
#pragma once

#include <cstddef>
#include <system_error>
#include <utility>

#include "http/server/owned_handler.h"
#include "spate/http/exchange.h"

namespace spate::http {

class BodyReader final : public OwnedHandler {
 public:
  BodyReader(Exchange exchange, std::size_t most, OnBody on_body)
      : exchange_(std::move(exchange)), most_(most), on_body_(std::move(on_body)) {}

  void on_body(Bytes bytes) override;
  void on_body_end(const FieldsView& trailers) override;

 private:
  void refuse();

  Exchange exchange_;
  std::size_t most_;
  OnBody on_body_;
  Buffer body_;
};

}  // namespace spate::http
