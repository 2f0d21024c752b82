// PathWatch: the paths that one loop watches: by inotify where that sees everything, by polling
// elsewhere.
#pragma once

#include <string>
#include <system_error>

#include "spate/stat.h"
#include "sys/descriptor.h"
#include "sys/path.h"

namespace spate {

class LoopCore;

// Converts the system's status of a file that exists.
FileStatus file_status_of(const struct stat& status);

class PathWatch {
 public:
  explicit PathWatch(LoopCore& loop);
  PathWatch(const PathWatch&) = delete;
  PathWatch& operator=(const PathWatch&) = delete;

  // Returns the error of a path that cannot be watched: EINVAL, also for nullptr; ENAMETOOLONG.
  static std::error_code check(const char* path);
  std::error_code start(StatNode& node);
  void stop(StatNode& node);
  void stop_all();
  void after_fork();
  template <class F>
  void for_each(const F& show) const {
    for (const StatNode* node = first_; node != nullptr; node = node->next) show(*node);
  }
  // True if a change could not be queued because memory ran out.
  bool has_unreported() const { return has_unreported_; }
  void report_again();
  // Reads the status without reporting.
  static void refresh(StatNode& node);

 private:
  bool open_inotify();
  void add_watch(StatNode& node);
  void drop_watch(StatNode& node);
  long watch_file(StatNode& node, const char* path, sys::Follow follow);
  bool watch_nearest_parent(StatNode& node);
  bool poll_too(StatNode& node);

  void look_at(StatNode& node);
  void on_inotify();
  void do_without_inotify();
  void on_watch_event(int watch, bool is_gone);

  LoopCore& loop_;
  StatNode* first_ = nullptr;
  sys::Descriptor inotify_;
  FdNode inotify_node_{};
  bool inotify_refused_ = false;
  bool has_unreported_ = false;
};

}  // namespace spate
