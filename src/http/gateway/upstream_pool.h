// UpstreamPool: the upstreams of a Gateway: which one a request gets, and which of them rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "spate/http/request.h"
#include "spate/http/status.h"
#include "spate/http/upstreams.h"
#include "spate/loop.h"
#include "spate/time.h"

namespace spate::http {

// One upstream.
struct Backend {
  std::string url;
  std::uint64_t weight = 1;
  std::uint64_t identity = 0;  // A hash of the URL.
  std::int64_t turn = 0;       // Its place among equally loaded ones: the highest is next.
  std::size_t forwarding = 0;
  std::uint64_t forwarded = 0;
  std::uint64_t failed = 0;
  unsigned fails = 0;          // Since window_began.
  Nanos window_began{0};
  unsigned rests = 0;          // Since it was available. 0: it is available.
  Nanos rests_until{0};
  bool has_trial = false;      // The request after a rest is in progress.
  bool is_healthy = true;      // By its checks.
  unsigned contradictions = 0;  // Checks in a row whose result is not `is_healthy`.
  std::uint64_t outages = 0;
  std::uint64_t checks = 0;
  std::uint64_t failed_checks = 0;
};

// Returns whether a Gateway accepts the options. `has_tls`: its Client can reach https.
bool is_valid(const UpstreamOptions& options, bool has_tls);

class UpstreamPool {
 public:
  // The options must be valid.
  UpstreamPool(Loop& loop, UpstreamOptions options);
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;

  // Returns the upstream for a request that has tried others. Null if it has tried all.
  Backend* choose(const Request& request, const std::vector<const Backend*>& tried);
  unsigned attempts() const { return options_.attempts; }
  std::vector<Backend>& backends() { return backends_; }

  // Takes the result of a health check; `status` is that of HttpError::unhealthy_status. May call
  // user code.
  void note_check(Backend& backend, std::error_code error, std::optional<Status> status);
  std::vector<UpstreamMetrics> metrics() const;

 private:
  friend class UpstreamUse;

  // How well an upstream suits a request.
  enum class Fitness : std::uint8_t { unhealthy, rests, available };

  Fitness fitness(const Backend& backend) const;
  bool is_available(const Backend& backend) const { return fitness(backend) == Fitness::available; }
  Backend& least_loaded();
  Backend& by_hash(const Request& request);
  std::string key_of(const Request& request) const;
  void note_failure(Backend& backend, std::error_code error);
  void rest(Backend& backend, std::error_code error);
  void note_recovery(Backend& backend);
  void report(Backend& backend, UpstreamChange change);

  Loop& loop_;
  UpstreamOptions options_;
  std::vector<Backend> backends_;
  std::vector<Backend*> candidates_;  // For choose().
  std::uint64_t random_;
};

// The use of an upstream by one request.
class UpstreamUse {
 public:
  UpstreamUse() = default;
  UpstreamUse(const UpstreamUse&) = delete;
  UpstreamUse& operator=(const UpstreamUse&) = delete;
  ~UpstreamUse() { end(); }

  void begin(UpstreamPool& pool, Backend& backend);
  // These have no effect unless begin() was called.
  void succeed();
  void fail(std::error_code error);
  void end();

 private:
  UpstreamPool* pool_ = nullptr;
  Backend* backend_ = nullptr;
  unsigned rests_ = 0;  // The number of its upstream at the beginning.
  bool is_trial_ = false;
};

}  // namespace spate::http
