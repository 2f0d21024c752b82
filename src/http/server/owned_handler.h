// OwnedHandler: a handler that its exchange owns. It holds the Exchange meanwhile. At the end it is
// destroyed, so on_closed() does nothing.
#pragma once

#include <system_error>

#include "spate/http/exchange.h"

namespace spate::http {

class OwnedHandler : public ExchangeHandler {
 public:
  virtual ~OwnedHandler() = default;
  void on_closed(std::error_code) final {}
};

}  // namespace spate::http
