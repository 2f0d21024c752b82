// The version of the library, and time without a loop.
//
// Semantics: ev(3) "GLOBAL FUNCTIONS". The original's backend for Linux AIO, which its
// documentation discourages, is missing here.
#include <time.h>

#include "compat/libev/ev_api.h"
#include "compat/libev/seconds.h"

int ev_version_major() noexcept { return EV_VERSION_MAJOR; }
int ev_version_minor() noexcept { return EV_VERSION_MINOR; }

unsigned int ev_supported_backends() noexcept {
  return ev_recommended_backends() | EVBACKEND_IOURING;
}
unsigned int ev_recommended_backends() noexcept {
  return EVBACKEND_SELECT | EVBACKEND_POLL | EVBACKEND_EPOLL;
}
// On this and other systems.
unsigned int ev_embeddable_backends() noexcept {
  return EVBACKEND_EPOLL | EVBACKEND_KQUEUE | EVBACKEND_PORT | EVBACKEND_IOURING;
}

ev_tstamp ev_time() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + spate::libev::to_seconds(now.tv_nsec);
}

void ev_sleep(ev_tstamp delay) noexcept {
  if (!(delay > 0)) return;
  const std::int64_t nanos = spate::libev::to_nanos(delay);
  const timespec span{nanos / 1'000'000'000, nanos % 1'000'000'000};
  nanosleep(&span, nullptr);
}
