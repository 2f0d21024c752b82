#include <deque>
#include <optional>
#include <utility>

#include "http/server/exchange_state.h"
#include "spate/assert.h"
#include "spate/http/middleware.h"
#include "spate/loop.h"
#include "spate/timer.h"

namespace spate::http {

// Each exchange in progress refers to it, and may outlive the ConcurrencyLimit.
class ConcurrencyLimit::State : public std::enable_shared_from_this<State> {
 public:
  State(Service& next, const ConcurrencyLimitOptions& options) : next_(next), options_(options) {}

  void take(Exchange exchange) {
    if (active_ < options_.max) return begin(std::move(exchange));
    forget_closed();
    if (waiting_.size() >= options_.max_waiting) return refuse(std::move(exchange));
    Loop& loop = exchange.loop();
    waiting_.push_back({.exchange = std::move(exchange), .until = loop.now() + options_.max_wait});
    if (!timer_) timer_.emplace(loop, [this] { on_timer(); });
    if (!timer_->is_active()) timer_->start(options_.max_wait);
  }

  // The ConcurrencyLimit is being destroyed, after its servers: waiting requests have no client.
  void end() {
    waiting_.clear();
    timer_.reset();
    is_ended_ = true;
  }

  std::size_t active() const { return active_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Exchange exchange;
    Nanos until;
  };

  // An exchange's place, until its end or until its server is destroyed.
  class Place {
   public:
    explicit Place(std::shared_ptr<State> state) : state_(std::move(state)) { ++state_->active_; }
    Place(Place&& other) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (state_ != nullptr) --state_->active_;
    }
    void operator()(const AccessRecord&) {
      const std::shared_ptr<State> state = std::move(state_);
      --state->active_;
      state->begin_waiting();
    }

   private:
    std::shared_ptr<State> state_;
  };

  void begin(Exchange exchange) {
    if (!exchange.on_end(Place(shared_from_this()))) return;
    next_.on_request(std::move(exchange));
  }

  void begin_waiting() {
    while (!is_ended_ && !waiting_.empty() && active_ < options_.max) {
      Exchange exchange = std::move(waiting_.front().exchange);
      waiting_.pop_front();
      if (exchange.is_open()) begin_later(std::move(exchange));
    }
  }

  // The caller on the stack is the end of another exchange, which an exception must not reach.
  void begin_later(Exchange exchange) {
    if (!exchange.on_end(Place(shared_from_this()))) return;
    ExchangeState::serve(next_, std::move(exchange));
  }

  void forget_closed() {
    if (waiting_.size() < options_.max_waiting) return;
    std::erase_if(waiting_, [](const Waiting& waiting) { return !waiting.exchange.is_open(); });
  }

  static void refuse(Exchange exchange) {
    exchange.add_field(FieldId::retry_after, "1");
    ExchangeState::of(exchange)->respond_refusal(
        {Status::service_unavailable, "too many requests at once"});
  }

  void on_timer() {
    const Nanos now = timer_->loop().now();
    while (!waiting_.empty() && waiting_.front().until <= now) {
      Exchange exchange = std::move(waiting_.front().exchange);
      waiting_.pop_front();
      refuse(std::move(exchange));
    }
    if (!waiting_.empty()) timer_->start(waiting_.front().until - now);
  }

  Service& next_;
  const ConcurrencyLimitOptions options_;
  std::size_t active_ = 0;
  std::deque<Waiting> waiting_;
  std::optional<Timer> timer_;  // Set to the time of the first waiting request.
  bool is_ended_ = false;
};

ConcurrencyLimit::ConcurrencyLimit(Service& next, const ConcurrencyLimitOptions& options)
    : state_(std::make_shared<State>(next, options)) {
  SPATE_ASSERT(options.max > 0, "a concurrency limit is at least one");
}

ConcurrencyLimit::~ConcurrencyLimit() { state_->end(); }

void ConcurrencyLimit::on_request(Exchange exchange) { state_->take(std::move(exchange)); }
std::size_t ConcurrencyLimit::active() const { return state_->active(); }
std::size_t ConcurrencyLimit::waiting() const { return state_->waiting(); }

}  // namespace spate::http
