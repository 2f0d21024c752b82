// HealthChecks: the requests by which a Gateway finds out which of its upstreams are healthy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/background_timer.h"
#include "http/gateway/upstream_pool.h"
#include "spate/error.h"
#include "spate/hooks.h"
#include "spate/http/client.h"
#include "spate/http/status.h"
#include "spate/http/upstreams.h"
#include "spate/loop.h"

namespace spate::http {

// Returns whether a Gateway accepts the options.
bool is_valid(const HealthCheck& options);

// Returns the options for a Client of health checks. `options` are those of the Gateway's Client,
// whose `open` both use afterwards. Errors: ENOMEM.
Result<ClientOptions> health_check_client(ClientOptions& options);

class HealthChecks {
 public:
  // The options must be valid. `proxy_header` begins each connection. `pool` must outlive this.
  // Errors: those of Client::create(); ENOMEM.
  static Result<std::unique_ptr<HealthChecks>> make(Loop& loop, UpstreamPool& pool,
                                                    ClientOptions client, HealthCheck options,
                                                    std::string proxy_header);
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;
  ~HealthChecks();

 private:
  class Check;

  HealthChecks(Loop& loop, UpstreamPool& pool, Client client, HealthCheck options,
               std::string proxy_header);
  bool start();
  void check_all();
  bool is_healthy(Status status) const;

  UpstreamPool& pool_;
  Client client_;
  const HealthCheck options_;
  const std::string proxy_header_;
  std::uint64_t random_;
  std::vector<std::unique_ptr<Check>> checks_;
  std::size_t in_progress_ = 0;
  BackgroundTimer timer_;
  Cleanup end_of_loop_;
};

}  // namespace spate::http
