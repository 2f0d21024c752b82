// Bugs of exchanges that random programs found.
#include <gtest/gtest.h>

#include <string>

#include "http/harness.h"

namespace spate::testing {
namespace {

class FoundInExchanges : public HttpServerTest {};

// The rest of the body was not discarded, and the connection served nothing until it was closed as
// too slow.
TEST_F(FoundInExchanges, ExchangePausedAfterItsResponseDoesNotBlockOthers) {
  http::Exchange kept;
  on_request = [&](http::Exchange exchange) {
    if (exchange.request().method() == http::Method::get) {
      exchange.respond("second");
    } else {
      kept = std::move(exchange);
    }
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
  turns();
  kept.respond("first");
  turns();
  kept.pause();
  kept = {};
  client->send(std::string("abcd").append(kGet));
  turns();
  EXPECT_TRUE(client->received.ends_with("second")) << client->received;
}

}  // namespace
}  // namespace spate::testing
