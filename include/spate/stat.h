// Stat: calls back when a path starts to name something else, or what it names changes: contents,
// size, owner, mode, times, existence.
//
// The path need not exist; its coming into being is a change. Where inotify can serve (local file
// systems) nothing is polled while all is quiet; elsewhere, and where inotify's limits are reached,
// the path is looked at every interval(). Changes faster than that, or within one tick of the file
// system's clock, may be merged, and inotify does not see a directory further up being renamed, nor
// a link there being changed. A symbolic link at the end of the path is watched itself, or, by
// option, what it leads to. An active watcher keeps its loop alive.
#pragma once

#include <string>

#include "spate/watcher.h"

namespace spate {

// What lstat() says of a path, or stat(), in neutral types. All zero, links included, when the path
// names nothing.
struct FileStatus {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::uint64_t special_device = 0;
  std::int64_t size = 0;  // Bytes.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  WallTime accessed{};
  WallTime modified{};
  WallTime changed{};

  bool exists() const { return links != 0; }
  bool operator==(const FileStatus&) const = default;
};

struct StatNode {
  Node head;
  TimerNode poll;         // core: direct.
  StatNode* next;         // core: the loop's list.
  std::int64_t interval;  // Nanoseconds.
  int watch;              // core: the inotify watch, or -1.
  bool follow_links;
  std::string path;
  FileStatus current;
  FileStatus previous;
};

struct StatOptions {
  // How often the path is looked at where inotify does not serve. Zero: Stat::kDefaultInterval;
  // less than Stat::kMinInterval: that.
  Nanos interval{0};
  // Watches what a symbolic link at the end of the path leads to. Such a path is looked at every
  // interval, too: nothing tells that the link leads elsewhere.
  bool follow_links = false;
};

class Stat : public Watcher<Stat, StatNode> {
 public:
  // libev's default, chosen odd so that many watchers do not march in step.
  static constexpr Nanos kDefaultInterval{5'007'489'100};
  static constexpr Nanos kMinInterval{107'489'100};

  Stat(Loop& loop, Delegate<Stat> callback) : Watcher(loop, callback) {}
  ~Stat() { stop(); }

  // Starts, anew if active, and looks at the path at once (blocking as lstat() does). Errors:
  // EINVAL for an empty path or one with a NUL byte, ENAMETOOLONG, ENOMEM, Error::loop_forked.
  std::error_code start(std::string_view path, const StatOptions& options = {}) {
    stop();
    node_.path = path;
    node_.follow_links = options.follow_links;
    const Nanos interval = options.interval == Nanos{0} ? kDefaultInterval : options.interval;
    node_.interval = (interval < kMinInterval ? kMinInterval : interval).count();
    return loop_->start(node_);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  const std::string& path() const { return node_.path; }
  Nanos interval() const { return Nanos{node_.interval}; }
  // In the callback: what the path names now, and what it named before. Both stay until the next
  // look.
  const FileStatus& current() const { return node_.current; }
  const FileStatus& previous() const { return node_.previous; }
  // Looks now, without calling back.
  void refresh() { loop_->refresh(node_); }
};

}  // namespace spate
