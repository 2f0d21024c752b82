#include "http/gateway/upstream_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/backoff.h"
#include "base/mix.h"
#include "http/codec/characters.h"
#include "http/gateway/health_checks.h"
#include "spate/http/cookie.h"
#include "spate/http/url.h"
#include "sys/random.h"

namespace spate::http {

namespace {

constexpr unsigned kMostWeight = 1000;

std::uint64_t hash(std::string_view text) { return mix(fnv1a(text)); }

// Returns the URL without what does not matter, or an empty string for one that is not accepted.
std::string origin_in(const std::string& text, bool has_tls) {
  const Result<Url> url = Url::parse(text);
  const bool is_valid = url && url->target() == "/" && !url->has_fragment() &&
                        (url->scheme() == "http" || (url->scheme() == "https" && has_tls));
  return is_valid ? url->to_string() : std::string();
}

bool are_valid(const std::vector<Upstream>& servers, bool has_tls) {
  std::vector<std::string> urls;
  for (const Upstream& each : servers) {
    urls.push_back(origin_in(each.url, has_tls));
    const bool is_secure = urls.back().starts_with("https:");
    if (urls.back().empty() || is_secure != urls.front().starts_with("https:")) return false;
    if (each.weight == 0 || each.weight > kMostWeight) return false;
  }
  std::ranges::sort(urls);
  return !urls.empty() && std::ranges::adjacent_find(urls) == urls.end();
}

bool is_valid_key(const UpstreamOptions& options) {
  const std::string& field = options.key_field;
  const std::string& cookie = options.key_cookie;
  if (options.balance != UpstreamBalance::consistent_hash) return field.empty() && cookie.empty();
  return (field.empty() || cookie.empty()) && (field.empty() || is_token(field)) &&
         (cookie.empty() || is_token(cookie));
}

// Returns whether no upstream is to blame: this machine lacks something, or the request is invalid.
bool is_our_own(std::error_code error) {
  for (const std::errc each :
       {std::errc::not_enough_memory, std::errc::invalid_argument, std::errc::too_many_files_open,
        std::errc::too_many_files_open_in_system, std::errc::no_buffer_space,
        std::errc::address_not_available}) {
    if (error == each) return true;
  }
  return false;
}

// Rendezvous hashing: each upstream draws a number for the key, whose distribution its weight
// decides, and the highest wins. Other upstreams do not change the numbers.
double score(const Backend& backend, std::uint64_t key) {
  const double draw = 1 - share(backend.identity ^ key);  // In (0, 1].
  return static_cast<double>(backend.weight) / (0 - std::log(draw));
}

}  // namespace

bool is_valid(const UpstreamOptions& options, bool has_tls) {
  return are_valid(options.servers, has_tls) && is_valid_key(options) && options.attempts > 0 &&
         (!options.health_check || is_valid(*options.health_check)) &&
         options.fail_window > Nanos{0} && options.first_rest > Nanos{0} &&
         options.max_rest >= options.first_rest && options.max_rest < kForever;
}

UpstreamPool::UpstreamPool(Loop& loop, UpstreamOptions options)
    : loop_(loop), options_(std::move(options)), random_(sys::random_seed()) {
  for (Upstream& each : options_.servers) {
    std::string origin = Url::parse(each.url)->to_string();
    const std::uint64_t identity = hash(origin);
    backends_.push_back(
        {.url = std::move(origin), .weight = each.weight, .identity = identity});
  }
  candidates_.reserve(backends_.size());
}

std::vector<UpstreamMetrics> UpstreamPool::metrics() const {
  std::vector<UpstreamMetrics> metrics;
  for (const Backend& each : backends_) {
    metrics.push_back({.url = each.url,
                       .is_available = each.is_healthy && each.rests == 0,
                       .is_healthy = each.is_healthy,
                       .forwarding = each.forwarding,
                       .forwarded = each.forwarded,
                       .failed = each.failed,
                       .outages = each.outages,
                       .checks = each.checks,
                       .failed_checks = each.failed_checks});
  }
  return metrics;
}

// ---- the choice

UpstreamPool::Fitness UpstreamPool::fitness(const Backend& backend) const {
  if (!backend.is_healthy) return Fitness::unhealthy;
  const bool may_be_tried = loop_.now() >= backend.rests_until && !backend.has_trial;
  return backend.rests == 0 || may_be_tried ? Fitness::available : Fitness::rests;
}

// If none is available, a request that may fail is better than one that is refused: a client whose
// requests make every upstream fail must not be able to stop the service, nor a mistake in the
// health check.
Backend* UpstreamPool::choose(const Request& request, const std::vector<const Backend*>& tried) {
  for (const Fitness least : {Fitness::available, Fitness::rests, Fitness::unhealthy}) {
    candidates_.clear();
    for (Backend& each : backends_) {
      const bool is_new = std::ranges::find(tried, &each) == tried.end();
      if (is_new && fitness(each) >= least) candidates_.push_back(&each);
    }
    if (candidates_.empty()) continue;
    const bool hashes = options_.balance == UpstreamBalance::consistent_hash;
    return hashes ? &by_hash(request) : &least_loaded();
  }
  return nullptr;
}

// Equally loaded upstreams take smooth turns: each gains its weight, and the chosen one loses the
// sum.
Backend& UpstreamPool::least_loaded() {
  const auto is_less_loaded = [](const Backend* a, const Backend* b) {
    return a->forwarding * b->weight < b->forwarding * a->weight;
  };
  const Backend* least = *std::ranges::min_element(candidates_, is_less_loaded);
  std::erase_if(candidates_, [&](const Backend* each) { return is_less_loaded(least, each); });
  std::int64_t sum = 0;
  for (Backend* each : candidates_) {
    each->turn += static_cast<std::int64_t>(each->weight);
    sum += static_cast<std::int64_t>(each->weight);
  }
  Backend& chosen = **std::ranges::max_element(candidates_, {}, &Backend::turn);
  chosen.turn -= sum;
  return chosen;
}

Backend& UpstreamPool::by_hash(const Request& request) {
  const std::uint64_t key = hash(key_of(request));
  return **std::ranges::max_element(candidates_, {},
                                    [key](const Backend* each) { return score(*each, key); });
}

std::string UpstreamPool::key_of(const Request& request) const {
  std::string_view key;
  if (!options_.key_field.empty()) key = request[options_.key_field];
  if (!options_.key_cookie.empty())
    key = cookie_value(request[FieldId::cookie], options_.key_cookie).value_or("");
  return key.empty() ? request.client().unmapped().host() : std::string(key);
}

// ---- rests

void UpstreamPool::note_failure(Backend& backend, std::error_code error) {
  if (options_.max_fails == 0) return;
  const Nanos now = loop_.now();
  if (backend.rests > 0) {
    if (now >= backend.rests_until) rest(backend, error);
    return;
  }
  if (now - backend.window_began > options_.fail_window) backend.fails = 0;
  if (backend.fails == 0) backend.window_began = now;
  if (++backend.fails >= options_.max_fails) rest(backend, error);
}

void UpstreamPool::rest(Backend& backend, std::error_code error) {
  const Nanos whole = doubled(options_.first_rest, options_.max_rest, backend.rests);
  const Nanos left_out{
      static_cast<std::int64_t>(static_cast<double>(whole.count()) * share(random_++) / 2)};
  backend.rests_until = loop_.now() + whole - left_out;
  backend.fails = 0;
  if (backend.rests++ == 0 && backend.is_healthy)
    report(backend, {.error = error, .rest = whole - left_out});
}

void UpstreamPool::note_recovery(Backend& backend) {
  backend.rests = 0;
  backend.fails = 0;
  if (backend.is_healthy) report(backend, {.is_available = true});
}

void UpstreamPool::report(Backend& backend, UpstreamChange change) {
  backend.outages += !change.is_available;
  if (!options_.on_change) return;
  change.url = backend.url;
  change.is_healthy = backend.is_healthy;
  options_.on_change(change);
}

// ---- health checks

void UpstreamPool::note_check(Backend& backend, std::error_code error,
                              std::optional<Status> status) {
  if (is_our_own(error)) return;
  const bool is_first = backend.checks++ == 0;
  const bool has_failed = static_cast<bool>(error);
  backend.failed_checks += has_failed;
  if (backend.is_healthy != has_failed) {
    backend.contradictions = 0;
    return;
  }
  const HealthCheck& check = *options_.health_check;
  const unsigned enough = has_failed ? (is_first ? 1 : check.fall) : check.rise;
  if (++backend.contradictions < enough) return;
  backend.contradictions = 0;
  backend.is_healthy = !has_failed;
  if (!has_failed) return note_recovery(backend);
  if (backend.rests == 0) report(backend, {.error = error, .status = status});
}

// ---- UpstreamUse

void UpstreamUse::begin(UpstreamPool& pool, Backend& backend) {
  end();
  pool_ = &pool;
  backend_ = &backend;
  rests_ = backend.rests;
  is_trial_ = backend.rests > 0 && pool.is_available(backend);
  if (is_trial_) backend.has_trial = true;
  ++backend.forwarding;
  ++backend.forwarded;
}

// A request that began before the rest proves nothing.
void UpstreamUse::succeed() {
  if (backend_ != nullptr && rests_ > 0 && backend_->rests == rests_)
    pool_->note_recovery(*backend_);
}

void UpstreamUse::fail(std::error_code error) {
  if (backend_ == nullptr || is_our_own(error)) return;
  ++backend_->failed;
  if (backend_->rests == rests_) pool_->note_failure(*backend_, error);
}

void UpstreamUse::end() {
  if (backend_ == nullptr) return;
  --backend_->forwarding;
  if (is_trial_) backend_->has_trial = false;
  backend_ = nullptr;
}

}  // namespace spate::http
