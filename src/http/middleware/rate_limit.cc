// RateLimit: one time for each client, the generic cell rate algorithm (ITU-T I.371).
#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <utility>

#include "http/server/exchange_state.h"
#include "spate/assert.h"
#include "spate/http/middleware.h"
#include "spate/loop.h"

namespace spate::http {

namespace {

constexpr std::size_t kLongestKey = 256;

std::string key_of(const Request& request) {
  const Address client = request.client().unmapped();
  const std::string_view bytes = text_of(client.ip_bytes());
  return std::string(bytes.substr(0, 8));  // An IPv6 customer has a network of 64 bits or more.
}

}  // namespace

class RateLimit::Clients {
 public:
  // `interval`: between two requests on average. `slack`: by how much they may be early.
  Clients(Nanos interval, Nanos slack, std::size_t max)
      : interval_(interval), slack_(slack), max_(max) {}

  // Counts a request. Returns zero if it is allowed, otherwise the time until one is.
  Nanos wait(std::string_view key, Nanos now) {
    Client& client = find(key);
    const Nanos early = std::max(client.due, now) - now;
    if (early > slack_) return early - slack_;
    client.due = now + early + interval_;
    return Nanos{0};
  }
  std::size_t size() const { return by_key_.size(); }

 private:
  struct Client {
    std::string key;
    Nanos due{0};  // The time of the next request, if all were on time.
  };
  using ByUse = std::list<Client>;

  Client& find(std::string_view key) {
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) return add(key);
    by_use_.splice(by_use_.begin(), by_use_, known->second);
    return *known->second;
  }
  Client& add(std::string_view key) {
    if (by_key_.size() == max_) {
      by_key_.erase(by_use_.back().key);
      by_use_.pop_back();
    }
    by_use_.push_front({.key = std::string(key)});
    by_key_.emplace(by_use_.front().key, by_use_.begin());
    return by_use_.front();
  }

  const Nanos interval_;
  const Nanos slack_;
  const std::size_t max_;
  ByUse by_use_;  // The last one first.
  // Ordered, as a hash table would be slow for keys that were chosen to collide.
  std::map<std::string_view, ByUse::iterator> by_key_;
};

RateLimit::RateLimit(Service& next, RateLimitOptions options)
    : next_(next), options_(std::move(options)) {
  SPATE_ASSERT(options_.rate > 0, "a rate limit must be above zero");
  SPATE_ASSERT(options_.burst > 0 && options_.max_clients > 0, "a burst and clients: at least one");
  const auto interval = Nanos{static_cast<std::int64_t>(std::min(1e9 / options_.rate, 1e15))};
  clients_ =
      std::make_unique<Clients>(interval, interval * (options_.burst - 1), options_.max_clients);
  if (!options_.key) options_.key = key_of;
}

RateLimit::~RateLimit() = default;

std::size_t RateLimit::clients() const { return clients_->size(); }

void RateLimit::on_request(Exchange exchange) {
  const std::string key = options_.key(exchange.request());
  const Nanos wait =
      clients_->wait(std::string_view(key).substr(0, kLongestKey), exchange.loop().now());
  if (wait == Nanos{0}) return next_.on_request(std::move(exchange));
  ++refused_;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  exchange.add_field(FieldId::retry_after, std::to_string(seconds));
  ExchangeState::of(exchange)->respond_refusal(
      {Status::too_many_requests, "too many requests"});
}

}  // namespace spate::http
