#include "net/process/service_manager_link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ownership.h"
#include "spate/error.h"
#include "sys/process.h"
#include "sys/socket.h"

namespace spate {

namespace {

constexpr Nanos kRetry{100'000'000};
constexpr Nanos kShortest{1'000'000};
constexpr std::string_view kWatchdog = "WATCHDOG=1";

}  // namespace

ServiceManagerLink::ServiceManagerLink(Loop& loop, sys::Descriptor socket, const Address& manager,
                                       Nanos watchdog)
    : loop_(loop),
      socket_(std::move(socket)),
      manager_(manager),
      watchdog_(watchdog),
      generation_(sys::fork_generation()),
      notify_(loop, [this] { notify_watchdog(); }),
      retry_(loop, [this] { send_waiting(); }),
      loop_ends_(loop, [this] {
        notify_.stop();
        retry_.stop();
      }) {}

ServiceManagerLink::~ServiceManagerLink() {
  if (!check()) send_waiting();
}

bool ServiceManagerLink::start() {
  if (!loop_ends_.start()) return false;
  return watchdog_ == Nanos{0} || notify_.start_repeating(std::max(watchdog_ / 2, kShortest));
}

std::error_code ServiceManagerLink::check() const {
  return sys::fork_generation() == generation_ ? std::error_code()
                                               : make_error_code(Error::loop_forked);
}

std::error_code ServiceManagerLink::send(std::string_view message) {
  if (const std::error_code error = check()) return error;
  send_waiting();
  if (!waiting_.empty()) return queue(message);
  const long result = transmit(message);
  return result == -EAGAIN ? queue(message) : sys::error_code(result);
}

std::error_code ServiceManagerLink::replace(std::string_view name, std::string_view message) {
  const auto same = std::ranges::find_if(
      waiting_, [name](const std::string& waiting) { return waiting.starts_with(name); });
  if (same == waiting_.end()) return send(message);
  if (const std::error_code error = check()) return error;
  *same = message;
  return {};
}

// If the timer cannot be started, the caller must know that the message is not sent later.
std::error_code ServiceManagerLink::queue(std::string_view message) {
  if (waiting_.size() == kMostWaiting || !loop_ends_.is_active()) return sys::error_code(-EAGAIN);
  if (!retry_.start_repeating(kRetry)) return sys::error_code(-ENOMEM);
  waiting_.emplace_back(message);
  return {};
}

// The socket is not connected, because the manager may replace its own.
long ServiceManagerLink::transmit(std::string_view message) {
  return sys::send_to(socket_.get(), message.data(), message.size(), manager_.data(),
                      manager_.size());
}

// If the socket is full, waiting for the next half of the interval could be too late.
void ServiceManagerLink::notify_watchdog() {
  if (check()) return;
  const long result = transmit(kWatchdog);
  if (result == -EAGAIN) {
    owes_watchdog_ = retry_.start_repeating(kRetry);
  } else if (result < 0) {
    last_error_ = sys::error_code(result);
  }
}

void ServiceManagerLink::send_waiting() {
  if (check()) return;
  while (!waiting_.empty() || owes_watchdog_) {
    const bool is_watchdog = owes_watchdog_;
    const long result = transmit(is_watchdog ? kWatchdog : std::string_view(waiting_.front()));
    if (result == -EAGAIN) return;
    if (result < 0) last_error_ = sys::error_code(result);
    if (is_watchdog) {
      owes_watchdog_ = false;
    } else {
      waiting_.pop_front();
    }
  }
  retry_.stop();
}

bool ServiceManagerLink::may_be_touched() const {
  return !loop_ends_.is_active() || may_touch(loop_);
}

}  // namespace spate
