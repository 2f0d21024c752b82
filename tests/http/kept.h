// An exchange of a server that a test keeps.
#pragma once

#include <cctype>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "spate/http/exchange.h"

namespace spate::testing {

// Keeps its exchange, and records its callbacks.
class Kept final : public http::ExchangeHandler {
 public:
  explicit Kept(http::Exchange given) : exchange(std::move(given)) { exchange.start(*this); }

  void on_body(Bytes bytes) override { body += text_of(bytes); }
  void on_body_end(const http::FieldsView& fields) override {
    is_ended = true;
    if (fields.empty()) return;
    for (const char c : fields.at(0).name) trailer += static_cast<char>(std::tolower(c));
    trailer += "=" + std::string(fields.at(0).value);
  }
  void on_client_end() override { has_client_ended = true; }
  void on_drained() override {
    ++drained;
    if (when_drained) when_drained();
  }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
  }

  http::Exchange exchange;
  std::function<void()> when_drained;
  std::string body;
  std::string trailer;  // The first one, with its name in lower case.
  std::error_code error;
  int drained = 0;
  bool is_ended = false;
  bool is_closed = false;
  bool has_client_ended = false;
};

}  // namespace spate::testing
