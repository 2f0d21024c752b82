// Stat: calls back when a path, or the file it names, changes: existence, contents, size, owner,
// mode, times.
//
// The path need not exist. On local file systems inotify is used, without polling. Elsewhere, and
// when inotify's limits are reached, the path is checked every interval(). Changes that are faster
// than that, or within one tick of the file system's clock, may be merged. inotify does not see the
// renaming of a parent directory further up, nor a change to a link there. A symbolic link at the
// end of the path is watched itself, or, by option, its target. An active watcher keeps its loop
// alive.
//
// Threads: the loop's thread only.
#pragma once

#include <string>
#include <string_view>

#include "spate/watcher.h"

namespace spate {

// The result of lstat() or stat(), in portable types. If the path does not exist, everything is
// zero, including `links`.
struct FileStatus {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::uint64_t special_device = 0;
  std::int64_t size = 0;  // Bytes.
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t : 32;  // Padding, so that 32-bit machines have this layout, too.
  WallTime accessed{};
  WallTime modified{};
  WallTime changed{};

  // Returns whether there is a file: one without a link is as good as none.
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
  const char* path;  // Must not change while active.
  FileStatus current;
  FileStatus previous;
};

struct StatOptions {
  // Interval for polling, where inotify cannot be used. Zero: Stat::kDefaultInterval; at least
  // Stat::kMinInterval.
  Nanos interval{0};
  // Watches the target of a symbolic link at the end of the path. Such a path is also polled,
  // because inotify does not report a change of the link.
  bool follow_links = false;
};

class Stat : public Watcher<Stat, StatNode> {
 public:
  // libev's default. An odd value, so that watchers do not synchronize.
  static constexpr Nanos kDefaultInterval{5'007'489'100};
  static constexpr Nanos kMinInterval{107'489'100};

  Stat(Loop& loop, Delegate<Stat> callback) : Watcher(loop, callback) {}
  ~Stat() { stop(); }

  // Starts or restarts, and checks the path at once (blocking, as lstat() does). Errors: EINVAL for
  // an empty path or one with a NUL byte, ENAMETOOLONG, ENOMEM, Error::loop_forked.
  std::error_code start(std::string_view path, const StatOptions& options = {}) {
    stop();
    // The kernel would stop at the NUL and check another path.
    if (path.find('\0') != path.npos) path = {};
    path_ = path;
    node_.path = path_.c_str();
    node_.follow_links = options.follow_links;
    const Nanos interval = options.interval == Nanos{0} ? kDefaultInterval : options.interval;
    node_.interval = (interval < kMinInterval ? kMinInterval : interval).count();
    return loop_->start(node_);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  const std::string& path() const { return path_; }
  Nanos interval() const { return Nanos{node_.interval}; }
  // Return the new status and the one before it. They change only with the next check.
  const FileStatus& current() const { return node_.current; }
  const FileStatus& previous() const { return node_.previous; }
  // Checks the path now, without calling back.
  void refresh() { loop_->refresh(node_); }

 private:
  std::string path_;
};

}  // namespace spate
