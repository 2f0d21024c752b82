#include "core/periodics.h"

#include <cerrno>

#include "core/loop_core.h"
#include "core/user_code.h"
#include "sys/clock_change.h"

namespace spate {

namespace {

// Greater than the slewing of the clock between two checks, less than any manual setting.
constexpr Nanos kJump{50'000'000};
// The interval of checks where the kernel does not report changes.
constexpr Nanos kLookAgain{60'000'000'000};

// Returns how far `time` is past the last multiple of `interval`.
std::int64_t phase(std::int64_t time, std::int64_t interval) {
  const std::int64_t rest = time % interval;
  return rest < 0 ? rest + interval : rest;
}

}  // namespace

Periodics::Periodics(LoopCore& loop) : loop_(loop) {
  change_node_.head.priority = kDirect;
  change_node_.head.context = this;
  change_node_.head.callback = [](void* context, Node&, Events) {
    static_cast<Periodics*>(context)->on_change();
  };
}

PeriodicNode& Periodics::owner_of(Node& timer_head) {
  return *reinterpret_cast<PeriodicNode*>(reinterpret_cast<char*>(&timer_head) -
                                          offsetof(PeriodicNode, timer));
}

std::error_code Periodics::start(PeriodicNode& node) {
  const std::error_code no_memory{ENOMEM, std::system_category()};
  if (!nodes_.push(&node)) return no_memory;
  node.head.active = static_cast<std::uint32_t>(nodes_.size());
  node.timer = {};
  node.timer.head.priority = kDirect;
  node.timer.head.context = this;
  node.timer.head.callback = [](void* context, Node& head, Events) {
    static_cast<Periodics*>(context)->on_timer(owner_of(head));
  };
  node.timer.deadline = loop_.now().count();
  if (!loop_.start_timer(node.timer)) {
    stop(node);
    return no_memory;
  }
  if (nodes_.size() == 1) watch_for_changes();
  loop_.request_slow_turn();
  const std::int64_t wall = loop_.wall_now().time_since_epoch().count();
  node.at = node.reschedule == nullptr && node.interval == 0 ? node.offset : next_time(node, wall);
  schedule(node, wall);
  return {};
}

void Periodics::stop(PeriodicNode& node) {
  if (node.timer.head.active != 0) loop_.stop_timer(node.timer);
  PeriodicNode* last = nodes_.back();
  nodes_[node.head.active - 1] = last;
  last->head.active = node.head.active;
  nodes_.pop();
  node.head.active = 0;
  if (nodes_.empty() && change_node_.head.active != 0) {
    loop_.stop_fd_before_close(change_node_);
    change_timer_ = sys::Descriptor();
  }
}

void Periodics::stop_all() {
  while (!nodes_.empty()) stop(*nodes_.back());
}

// Returns the first time after `now`, or the only time of a one-shot node.
std::int64_t Periodics::next_time(const PeriodicNode& node, std::int64_t now) {
  if (node.reschedule != nullptr) {
    const auto ask = [&] { return node.reschedule(node.reschedule_context, WallTime{Nanos{now}}); };
    return call_user(Events::periodic, ask).time_since_epoch().count();
  }
  if (node.interval == 0) return node.offset;
  std::int64_t since = phase(now, node.interval) - phase(node.offset, node.interval);
  if (since < 0) since += node.interval;
  const std::int64_t away = node.interval - since;
  return now <= INT64_MAX - away ? now + away : INT64_MAX;
}

// Sets the timer for the node's time.
void Periodics::schedule(PeriodicNode& node, std::int64_t wall) {
  const bool is_beyond = wall < 0 && node.at > INT64_MAX + wall;
  const Nanos away = is_beyond ? kForever : Nanos{node.at > wall ? node.at - wall : 0};
  loop_.restart_timer(node.timer, deadline_after(loop_.now(), away).count());
}

// The wall clock may be before the time if it was set back, or slewed: waits again.
void Periodics::on_timer(PeriodicNode& node) {
  const std::int64_t wall = loop_.wall_now().time_since_epoch().count();
  if (wall < node.at) return schedule(node, wall);
  if (!loop_.deliver(node.head, Events::periodic)) return schedule(node, wall);  // Due again.
  node.at = next_time(node, wall);
  if (node.at > wall) return schedule(node, wall);
  loop_.retire(node);
}

Nanos Periodics::longest_wait() const {
  if (nodes_.empty()) return kForever;
  if (loop_.is_suspended()) return kJump;
  return change_timer_.is_open() ? kForever : kLookAgain;
}

void Periodics::check_clock() {
  const Nanos distance = clock_distance();
  const Nanos jumped = distance > distance_ ? distance - distance_ : distance_ - distance;
  if (jumped < kJump) return;
  distance_ = distance;
  const std::int64_t wall = loop_.wall_now().time_since_epoch().count();
  for (std::size_t i = nodes_.size(); i > 0; --i) reschedule(*nodes_[i - 1], wall);
}

// Times that a jump forward has passed are due now, once. After a jump back, earlier times occur
// again.
void Periodics::reschedule(PeriodicNode& node, std::int64_t wall) {
  if (node.at > wall) {
    const std::int64_t next = next_time(node, wall);
    if (next > wall) node.at = next;
  }
  schedule(node, wall);
}

Nanos Periodics::clock_distance() const {
  return loop_.wall_now().time_since_epoch() - loop_.now();
}

// Without the timer, for lack of a descriptor, a jump is noticed at the next turn: see
// longest_wait().
void Periodics::watch_for_changes() {
  distance_ = clock_distance();
  const long fd = sys::create_clock_change_timer();
  if (fd < 0) return;
  sys::Descriptor timer(fd);
  if (sys::arm_clock_change_timer(timer.get()) < 0) return;
  change_node_.fd = timer.get();
  change_node_.events = static_cast<std::uint32_t>(Events::read) | kFdIsNew;
  if (!loop_.start_fd(change_node_)) return;
  change_timer_ = std::move(timer);
}

// The clock was set: reading returns ECANCELED. The turn checks the clock in any case.
void Periodics::on_change() {
  if (change_node_.head.active == 0) {  // Refused by the backend.
    change_timer_ = sys::Descriptor();
    return;
  }
  std::uint64_t count;
  sys::read(change_timer_.get(), &count, sizeof(count));
  sys::arm_clock_change_timer(change_timer_.get());
}

void Periodics::after_fork() {
  if (nodes_.empty()) return;
  if (change_node_.head.active != 0) loop_.stop_fd_before_close(change_node_);
  change_timer_ = sys::Descriptor();
  watch_for_changes();
}

}  // namespace spate
