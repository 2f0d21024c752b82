// PairSides: a Server and a Client of a random program, connected in memory or by sockets, directly
// or through a Gateway with a second Server.
#pragma once

#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/loop.h"
#include "support/random.h"

namespace spate::testing {

class PairSides {
 public:
  PairSides(Random& random, Loop& loop, std::function<void(http::Exchange)> on_request);

  bool has_sockets() const { return has_sockets_; }
  bool has_gateway() const { return has_gateway_; }
  http::Client& client() { return client_; }

  // Replaces the current one.
  void renew_client();
  void renew_server();
  void renew_gateway();
  // As above, after the current one has drained.
  void drain_server();

  void expect_no_calls() const;
  void expect_nothing_left() const;

 private:
  void make_server();
  void make_front();
  http::ClientOptions client_options(http::Server& server);
  Result<std::pair<Stream, Stream>> make_pair();

  Random& random_;
  Loop& loop_;
  const std::function<void(http::Exchange)> on_request_;
  const bool has_sockets_ = random_.one_in(4);
  const bool has_gateway_ = random_.one_in(4);
  const std::error_code error_{ECONNREFUSED, std::system_category()};
  http::Server server_;
  http::Server front_;  // In which the gateway is.
  http::Gateway gateway_;
  http::Client client_;
  bool is_draining_ = false;
};

}  // namespace spate::testing
