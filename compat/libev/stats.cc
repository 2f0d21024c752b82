#include "compat/libev/stats.h"

#include <new>

#include "compat/libev/fatal.h"
#include "compat/libev/loop.h"
#include "compat/libev/seconds.h"
#include "spate/stat.h"

namespace spate::libev {

namespace {

constexpr double kDefaultInterval = 5.0074891;
constexpr double kShortestInterval = 0.1074891;

// Compares the members that ev(3) names.
bool differ(const struct stat& a, const struct stat& b) {
  return a.st_dev != b.st_dev || a.st_ino != b.st_ino || a.st_mode != b.st_mode ||
         a.st_nlink != b.st_nlink || a.st_uid != b.st_uid || a.st_gid != b.st_gid ||
         a.st_rdev != b.st_rdev || a.st_size != b.st_size || a.st_atim.tv_sec != b.st_atim.tv_sec ||
         a.st_mtim.tv_sec != b.st_mtim.tv_sec || a.st_ctim.tv_sec != b.st_ctim.tv_sec;
}

}  // namespace

struct Stats::Side {
  struct ev_loop& loop;
  ev_stat& stat;
  StatNode node{};
  TimerNode timer{};  // Where core cannot help.

  static void look(void* context, Node&, Events) {
    auto* side = static_cast<Side*>(context);
    const struct stat before = side->stat.attr;
    ev_stat_stat(&side->loop, &side->stat);
    if (!differ(before, side->stat.attr)) return;
    side->stat.prev = before;
    side->loop.pending.feed(base(side->stat), EV_STAT);
  }
};

Stats::Stats(struct ev_loop& loop) : loop_(loop) {}
Stats::~Stats() = default;

// `next` is private, and not used as a list here.
Stats::Side& Stats::side_of(const ev_stat& stat) { return *reinterpret_cast<Side*>(stat.next); }

void Stats::start(ev_stat& stat) {
  if (!loop_.begin(base(stat))) return;
  if (stat.interval != 0 && stat.interval < kShortestInterval) stat.interval = kShortestInterval;
  auto* side = new (std::nothrow) Side{loop_, stat};
  require(side != nullptr, "ev_stat_start: out of memory");
  stat.next = reinterpret_cast<ev_watcher_list*>(side);
  sides_.emplace_back(side);
  stat.active = static_cast<int>(sides_.size());
  side->node.interval = to_nanos(stat.interval > 0 ? stat.interval : kDefaultInterval);
  for (Node* node : {&side->node.head, &side->timer.head}) {
    node->priority = kDirect;
    node->context = side;
    node->callback = Side::look;
  }
  if ((loop_.flags & EVFLAG_NOINOTIFY) != 0 || !ask_core(*side)) poll(*side);
  ev_stat_stat(&loop_, &stat);  // Last: later changes are noticed.
}

bool Stats::ask_core(Side& side) {
  if (side.stat.path == nullptr) return false;
  side.node.path = side.stat.path;
  if (loop_.core->start(side.node)) return false;
  loop_.core->unref();
  return true;
}

void Stats::poll(Side& side) {
  side.timer.repeat = side.node.interval;
  side.timer.deadline = loop_.core->now().count() + side.timer.repeat;
  require(loop_.core->start(side.timer), "ev_stat_start: out of memory");
}

void Stats::stop(ev_stat& stat) {
  if (!loop_.end(base(stat))) return;
  Side& side = side_of(stat);
  if (side.node.head.active != 0) {
    loop_.core->ref();
    loop_.core->stop(side.node);
  }
  loop_.core->stop(side.timer);
  const auto place = static_cast<std::size_t>(stat.active) - 1;
  stat.active = 0;
  if (place + 1 != sides_.size()) {
    sides_[place].swap(sides_.back());
    sides_[place]->stat.active = static_cast<int>(place) + 1;
  }
  sides_.pop_back();
}

}  // namespace spate::libev

void ev_stat_start(struct ev_loop* loop, ev_stat* stat) noexcept { loop->stats.start(*stat); }
void ev_stat_stop(struct ev_loop* loop, ev_stat* stat) noexcept { loop->stats.stop(*stat); }

void ev_stat_stat(struct ev_loop*, ev_stat* stat) noexcept {
  if (stat->path == nullptr || lstat(stat->path, &stat->attr) < 0) {
    stat->attr.st_nlink = 0;
  } else if (stat->attr.st_nlink == 0) {
    stat->attr.st_nlink = 1;  // Some file systems do not count links.
  }
}
