// ev_child. An internal watcher of SIGCHLD reaps one child at a time; the watchers of one are
// called before the next is reaped.
//
// Semantics: ev(3) "ev_child".
#include "compat/libev/children.h"

#include <sys/wait.h>

#include <cerrno>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"
#include "compat/libev/signals.h"

using spate::libev::base;

namespace {

constexpr int kBuckets = 16;

ev_signal reaper;
ev_child* buckets[kBuckets];

ev_child* next_of(const ev_child& child) { return reinterpret_cast<ev_child*>(child.next); }
ev_child*& bucket_of(int pid) { return buckets[static_cast<unsigned int>(pid) % kBuckets]; }

void report_to(struct ev_loop& loop, ev_child* first, int pid, int status) {
  const bool is_end = !WIFSTOPPED(status) && !WIFCONTINUED(status);
  for (ev_child* child = first; child != nullptr; child = next_of(*child)) {
    if (child->pid != pid && child->pid != 0) continue;
    if (!is_end && (child->flags & 1) == 0) continue;
    child->rpid = pid;
    child->rstatus = status;
    child->priority = EV_MAXPRI;  // Set only here, to the reaper's priority.
    loop.pending.feed(base(*child), EV_CHILD);
  }
}

}  // namespace

// Feeds itself first, because the stack calls the last one first.
static void reap_one(struct ev_loop* loop, ev_signal* signal, int) {
  int status;
  const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
  if (pid <= 0) return;
  loop->pending.feed(base(*signal), EV_SIGNAL);
  report_to(*loop, bucket_of(pid), pid, status);
  if (&bucket_of(pid) != &bucket_of(0)) report_to(*loop, bucket_of(0), pid, status);
}

void spate::libev::start_reaping(struct ev_loop& loop) {
  reaper = {};
  reaper.cb = reap_one;
  reaper.priority = EV_MAXPRI;
  reaper.signum = SIGCHLD;
  ev_signal_start(&loop, &reaper);
  ev_unref(&loop);
}

void spate::libev::stop_reaping(struct ev_loop& loop) {
  if (reaper.active == 0) return;
  ev_ref(&loop);
  ev_signal_stop(&loop, &reaper);
}

void ev_child_start(struct ev_loop* loop, ev_child* child) noexcept {
  spate::libev::require(loop == ev_default_loop_uc_(), "ev_child_start: not the default loop");
  if (!loop->begin(base(*child))) return;
  child->active = 1;
  ev_child*& first = bucket_of(child->pid);
  child->next = reinterpret_cast<ev_watcher_list*>(first);
  first = child;
}

void ev_child_stop(struct ev_loop* loop, ev_child* child) noexcept {
  if (!loop->end(base(*child))) return;
  child->active = 0;
  ev_child* before = nullptr;
  for (ev_child* at = bucket_of(child->pid); at != nullptr; before = at, at = next_of(*at)) {
    if (at != child) continue;
    if (before != nullptr) {
      before->next = child->next;
    } else {
      bucket_of(child->pid) = next_of(*child);
    }
    return;
  }
}
