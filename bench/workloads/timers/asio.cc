// Standalone Asio: steady_timer. Setting the expiry cancels the pending wait, whose handler then
// runs with an error at the next pass; that pass is inside the timed phase. The context's
// concurrency hint says that one thread uses it (no locks), and the clock is read once a phase
// (expires_at, not expires_after).
#include "timers.h"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/version.hpp>
#include <deque>

namespace {

asio::io_context context(ASIO_CONCURRENCY_HINT_UNSAFE);
std::deque<asio::steady_timer> timers;
std::chrono::steady_clock::time_point now;

}  // namespace

static void timers_open(void) {
  for (long i = 0; i < timers_pending; i++) timers.emplace_back(context);
}

static void timers_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000,
           ASIO_VERSION % 100);
  bench_version(version, nullptr);
}

static void timers_update_now(void) { now = std::chrono::steady_clock::now(); }

static inline void timers_start(uint32_t i, uint64_t ns) {
  timers[i].expires_at(now + std::chrono::nanoseconds(ns));
  timers[i].async_wait([](const asio::error_code& error) {
    if (!error) timers_fired();
  });
}

static inline void timers_restart(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop(uint32_t i) { timers[i].cancel(); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) {
  context.restart();
  context.poll();
}

static void timers_inside(void (*phase)(void)) { phase(); }
