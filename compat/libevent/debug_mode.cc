#include "compat/libevent/debug_mode.h"

#include <fcntl.h>

#include <cstdint>
#include <mutex>

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

namespace spate::libevent::debug {

constinit bool is_on = false;
constinit std::atomic<bool> is_too_late{false};

namespace {

struct Entry {
  const event* ev;
  bool added;
  Entry* next;
};

constexpr std::size_t kBuckets = 4096;
constinit Entry** buckets = nullptr;
constinit std::mutex mutex;  // The table contains events of all bases and threads.

Entry** place_of(const event* ev) {
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(ev) * 0x9e3779b97f4a7c15;
  Entry** place = &buckets[mixed >> 52];
  while (*place != nullptr && (*place)->ev != ev) place = &(*place)->next;
  return place;
}
static_assert(kBuckets == 1 << (64 - 52));

Entry* find(const event* ev) { return buckets != nullptr ? *place_of(ev) : nullptr; }

[[noreturn]] void end_with(const event* ev, const char* function, const char* what) {
  fatal(kAbort, "%s: event %p (events 0x%x, fd %d, flags 0x%x) %s", function,
        static_cast<const void*>(ev), static_cast<unsigned>(ev->ev_events), ev->ev_fd,
        static_cast<unsigned>(ev->ev_evcallback.evcb_flags), what);
}

}  // namespace

void note_set_up(const event* ev) {
  const std::lock_guard guard(mutex);
  if (buckets == nullptr) {
    buckets = static_cast<Entry**>(allocate_zeroed(kBuckets * sizeof(Entry*)));
  }
  if (buckets == nullptr) fatal(1, "no memory for the table of debug mode");
  Entry** place = place_of(ev);
  if (*place == nullptr) *place = static_cast<Entry*>(allocate_zeroed(sizeof(Entry)));
  if (*place == nullptr) fatal(1, "no memory for the table of debug mode");
  (*place)->ev = ev;
  (*place)->added = false;
}

void note_torn_down(const event* ev) {
  const std::lock_guard guard(mutex);
  if (find(ev) == nullptr) return;
  Entry** place = place_of(ev);
  Entry* entry = *place;
  *place = entry->next;
  release(entry);
}

void note_added(const event* ev, bool added) {
  const std::lock_guard guard(mutex);
  if (Entry* entry = find(ev)) entry->added = added;
}

void check_set_up(const event* ev, const char* function) {
  const std::lock_guard guard(mutex);
  if (find(ev) == nullptr) end_with(ev, function, "was never set up");
}

void check_not_added(const event* ev, const char* function) {
  const std::lock_guard guard(mutex);
  const Entry* entry = find(ev);
  if (entry != nullptr && entry->added) end_with(ev, function, "is added");
}

void check_non_blocking(int fd) {
  const int flags = fd < 0 ? O_NONBLOCK : fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) {
    fatal(kAbort, "event_assign: descriptor %d is in blocking mode", fd);
  }
}

void shut_down() {
  is_on = false;
  const std::lock_guard guard(mutex);
  if (buckets == nullptr) return;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    while (Entry* entry = buckets[i]) {
      buckets[i] = entry->next;
      release(entry);
    }
  }
  release(buckets);
  buckets = nullptr;
}

}  // namespace spate::libevent::debug

namespace debug = spate::libevent::debug;

void event_enable_debug_mode() {
  if (debug::is_on) spate::libevent::fatal(1, "event_enable_debug_mode was called twice!");
  if (debug::is_too_late) {
    spate::libevent::fatal(1, "event_enable_debug_mode: there are events or event bases already");
  }
  debug::is_on = true;
}

void event_debug_unassign(event* ev) {
  if (debug::is_on) {
    debug::check_not_added(ev, "event_debug_unassign");
    debug::note_torn_down(ev);
  }
  ev->ev_evcallback.evcb_flags &= ~EVLIST_INIT;
}
