// CallState's retries, and its idle limit.
#include <algorithm>
#include <system_error>
#include <utility>

#include "base/backoff.h"
#include "http/client/call_state.h"
#include "http/client/carrier.h"
#include "http/client/client_core.h"
#include "http/codec/syntax.h"
#include "spate/error.h"
#include "spate/http/date.h"
#include "spate/http/error.h"
#include "spate/net/resolver.h"

namespace spate::http {

namespace {

bool is_retried(Status status) {
  return status == Status::too_many_requests || status == Status::bad_gateway ||
         status == Status::service_unavailable || status == Status::gateway_timeout;
}

bool may_be_temporary(std::error_code error) {
  for (const std::errc each :
       {std::errc::connection_refused, std::errc::connection_reset, std::errc::connection_aborted,
        std::errc::broken_pipe, std::errc::timed_out, std::errc::host_unreachable,
        std::errc::network_unreachable, std::errc::network_down}) {
    if (error == each) return true;
  }
  return error == Error::connect_timeout || error == Error::idle_timeout ||
         error == Error::tls_truncated || error == HttpError::response_truncated ||
         error == make_error_code(NameError::timeout) ||
         error == make_error_code(NameError::server_failure) ||
         error == make_error_code(NameError::unreachable);
}

}  // namespace

bool CallState::is_repeatable() const {
  return !was_seen_ && !asks_upgrade() && is_idempotent() && body_.may_begin();
}

bool CallState::may_retry() const {
  const unsigned most = options_.attempts.value_or(core_->options().retry.attempts);
  return attempt_ < most && is_repeatable();
}

bool CallState::may_ask_another(std::error_code error) const {
  return !was_sent_ || (is_repeatable() && may_be_temporary(error));
}

// Returns the time that the server requests; nullopt for a value that is neither seconds nor a
// date.
std::optional<Nanos> CallState::retry_after() const {
  const auto value = response_->fields_.find(FieldId::retry_after);
  if (!value) return Nanos{0};
  if (const auto seconds = parse_number(*value, Overflow::saturates))
    return std::chrono::seconds(std::min<std::uint64_t>(*seconds, 1'000'000'000));
  const std::chrono::sys_seconds now = core_->wall_second();
  const auto date = parse_date(*value, now);
  if (!date) return std::nullopt;
  return std::max(Nanos{0}, std::chrono::duration_cast<Nanos>(*date - now));
}

// Chooses the delay. False if it would end too late, or if the budget is spent.
bool CallState::plan_retry(Nanos least) {
  const RetryOptions& retry = core_->options().retry;
  if (least > retry.max_retry_after) return false;
  const Nanos longest = doubled(retry.first_delay, retry.max_delay, attempt_ - 1);
  retry_delay_ = std::max(least, core_->jitter(longest));
  if (deadline_.is_active() && retry_delay_ >= deadline_.remaining()) return false;
  return core_->take_from_budget();
}

void CallState::plan_retry() {
  will_retry_ = false;
  if (!is_retried(response_->status_) || !may_retry()) return;
  const std::optional<Nanos> least = retry_after();
  will_retry_ = plan_retry(least.value_or(Nanos{0}));
}

bool CallState::plan_retry(std::error_code error) {
  if (!may_be_temporary(error)) return false;
  return will_retry_ || (may_retry() && plan_retry(Nanos{0}));
}

Retry CallState::begin_retry(std::error_code error) {
  Retry retry{.method = method_text(),
              .url = *url_,
              .attempt = attempt_++,
              .error = error,
              .delay = retry_delay_};
  if (!error) retry.status = response_->status_;
  will_retry_ = false;
  forget_response();
  wait_.start(retry_delay_);
  return retry;
}

// ---- the idle limit. The timer of a call without a carrier is the delay of its retry.

void CallState::watch_progress() {
  if (options_.idle_timeout <= Nanos{0}) return;
  last_sent_bytes_ = sent_bytes();
  wait_.start(options_.idle_timeout);
}

void CallState::note_progress() {
  if (carrier_ != nullptr && wait_.is_active()) wait_.restart(options_.idle_timeout);
}

// Returns a number that changes when bytes leave the queues, which nothing may report.
std::uint64_t CallState::sent_bytes() const { return body_.passed() - carrier_->queued(); }

bool CallState::waits_for_user() const {
  return is_paused_ || (options_.upload && !body_.is_sent() && body_.ready() == 0);
}

void CallState::on_wait_over() {
  if (carrier_ == nullptr) return core_->retry_now(*this);
  const std::uint64_t before = std::exchange(last_sent_bytes_, sent_bytes());
  const bool has_sent = body_.content() != Content::none && last_sent_bytes_ != before;
  if (!waits_for_user() && !has_sent) return core_->fail(*this, Error::idle_timeout);
  wait_.start(options_.idle_timeout);
}

}  // namespace spate::http
