// ev_set_io_collect_interval and ev_set_timeout_collect_interval: sleeping for longer than needed,
// to have more to do afterwards.
//
// Semantics: ev(3) on both. The time added for timers is slept on the loop's descriptor, and so
// ends with any event; a backend without a descriptor does not add it.
#include <poll.h>

#include <algorithm>

#include "compat/libev/loop.h"
#include "compat/libev/seconds.h"

using spate::libev::to_nanos;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// The original's limit, unless a longer interval is set.
constexpr std::int64_t kLongestWait = 59'743'000'000;

}  // namespace

// Called when the loop may block. Returns true if it slept: then core must only poll.
bool ev_loop::sleep_first() {
  const std::int64_t timeout = core->prepare_to_wait().count();
  if (timeout <= 0 || has_work() || core->active_count() <= 0) return false;
  const std::int64_t since_last = core->now().count() - polled_at_;
  const std::int64_t longest =
      std::max(std::min(timeout, kLongestWait), to_nanos(timeout_interval));
  const std::int64_t spare = std::min(to_nanos(io_interval) - since_last, longest);
  if (spare > 0) ev_sleep(spate::libev::to_seconds(spare));
  const std::int64_t longer = to_nanos(timeout_interval) - std::max<std::int64_t>(spare, 0);
  return longer > timeout && sleep_on_descriptor(longer);
}

bool ev_loop::sleep_on_descriptor(std::int64_t nanos) {
  const auto fd = core->poll_fd();
  if (!fd) return false;
  pollfd entry{*fd, POLLIN, 0};
  const timespec span{nanos / kSecond, nanos % kSecond};
  before_wait(*core);
  ppoll(&entry, 1, &span, nullptr);
  after_wait(*core);
  return true;
}
