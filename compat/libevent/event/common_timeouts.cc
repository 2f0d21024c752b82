#include "compat/libevent/event/common_timeouts.h"

#include <cerrno>

#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {

namespace {

// Negative microseconds stay as they are, and so does exactly a million.
timeval carried(timeval duration) {
  if (duration.tv_usec <= kMicrosPerSecond) return duration;
  const auto seconds = static_cast<std::uint64_t>(duration.tv_sec);
  const auto more = static_cast<std::uint64_t>(duration.tv_usec / kMicrosPerSecond);
  return {.tv_sec = static_cast<std::time_t>(seconds + more),
          .tv_usec = duration.tv_usec % kMicrosPerSecond};
}

}  // namespace

CommonTimeouts::~CommonTimeouts() {
  for (int i = 0; i < count_; ++i) release(timeouts_[i]);
}

const timeval* CommonTimeouts::add(const timeval& duration) {
  const timeval normal = carried(duration_of(duration));
  for (int i = 0; i < count_; ++i) {
    const timeval known = plain(*timeouts_[i]);
    if (known.tv_sec == normal.tv_sec && known.tv_usec == normal.tv_usec) return timeouts_[i];
  }
  if (count_ == kMax) {
    warnx("event_base_init_common_timeout: an event base has room for %d of them", kMax);
    return nullptr;
  }
  auto* timeout = static_cast<timeval*>(allocate(sizeof(timeval)));
  if (timeout == nullptr) {
    errno = ENOMEM;
    warn("event_base_init_common_timeout");
    return nullptr;
  }
  *timeout = {.tv_sec = normal.tv_sec,
              .tv_usec = normal.tv_usec | kMark | static_cast<long>(count_) << kMicrosBits};
  timeouts_[count_++] = timeout;
  return timeout;
}

}  // namespace spate::libevent

const timeval* event_base_init_common_timeout(event_base* base, const timeval* duration) {
  const spate::libevent::Holding holding(base->lock());
  return base->common_timeouts().add(*duration);
}
