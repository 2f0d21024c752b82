// spate_stat.
#include <algorithm>
#include <cerrno>

#include "c/watchers.h"
#include "core/path_watch.h"

using namespace spate;
using c::StatPart;

static_assert(sizeof(spate_file_status) == sizeof(FileStatus) &&
              offsetof(spate_file_status, size) == offsetof(FileStatus, size) &&
              offsetof(spate_file_status, gid) == offsetof(FileStatus, gid) &&
              offsetof(spate_file_status, accessed) == offsetof(FileStatus, accessed));

void spate_stat_init(spate_stat* stat, spate_loop* loop, spate_stat_fn* callback, void* data) {
  c::init<StatPart>(stat, loop, callback, data).node.interval = Stat::kDefaultInterval.count();
}

int spate_stat_set(spate_stat* stat, const char* path, int64_t interval) {
  if (const std::error_code error = PathWatch::check(path)) return c::to_code(error);
  return c::set_anew(stat, spate_stat_start, spate_stat_stop, [&] {
    StatNode& node = c::part_of<StatPart>(stat).node;
    const Nanos wanted = interval == 0 ? Stat::kDefaultInterval : Nanos{interval};
    node.path = path;
    node.interval = std::max(wanted, Stat::kMinInterval).count();
  });
}

void spate_stat_set_follow_links(spate_stat* stat, int follow) {
  SPATE_ASSERT(spate_is_active(&stat->watcher) == 0, "stop() it first");
  c::part_of<StatPart>(stat).node.follow_links = follow != 0;
}

int spate_stat_start(spate_stat* stat) {
  StatPart& part = c::part_of<StatPart>(stat);
  if (part.node.path == nullptr) return -EINVAL;
  return c::start_by(part, [&](LoopCore& core) {
    return c::to_code(static_cast<NodeLoop&>(core).start(part.node));
  });
}

void spate_stat_stop(spate_stat* stat) {
  StatPart& part = c::part_of<StatPart>(stat);
  c::stop_by(part, [&](LoopCore& core) { static_cast<NodeLoop&>(core).stop(part.node); });
}

void spate_stat_refresh(spate_stat* stat) {
  StatPart& part = c::part_of<StatPart>(stat);
  c::core_behind(part.loop).refresh(part.node);
}

const char* spate_stat_path(const spate_stat* stat) { return c::part_of<StatPart>(stat).node.path; }
int64_t spate_stat_interval(const spate_stat* stat) {
  return c::part_of<StatPart>(stat).node.interval;
}
const spate_file_status* spate_stat_current(const spate_stat* stat) {
  return reinterpret_cast<const spate_file_status*>(&c::part_of<StatPart>(stat).node.current);
}
const spate_file_status* spate_stat_previous(const spate_stat* stat) {
  return reinterpret_cast<const spate_file_status*>(&c::part_of<StatPart>(stat).node.previous);
}
