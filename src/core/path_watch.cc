#include "core/path_watch.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "core/loop_core.h"
#include "sys/file_system.h"
#include "sys/inotify.h"
#include "sys/path.h"

namespace spate {

namespace {

// A file may have any time, while nanoseconds only reach from 1677 to 2262.
WallTime to_time(const timespec& spec) {
  constexpr auto kEnd = std::chrono::floor<std::chrono::seconds>(Nanos::max()).count();
  if (spec.tv_sec >= kEnd) return WallTime::max();
  if (spec.tv_sec <= -kEnd) return WallTime::min();
  return WallTime{std::chrono::seconds{spec.tv_sec} + Nanos{spec.tv_nsec}};
}

sys::Follow follow_of(const StatNode& node) {
  return node.follow_links ? sys::Follow::yes : sys::Follow::no;
}

FileStatus look(const char* path, sys::Follow follow) {
  struct stat status{};
  return sys::look_at(path, follow, status) < 0 ? FileStatus{} : file_status_of(status);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

FileStatus look(const StatNode& node) { return look(node.path, follow_of(node)); }

bool is_root(const std::string& path) { return path == "/" || path == "."; }

bool is_missing(long error) { return error == -ENOENT || error == -ENOTDIR; }

// Also for a path that does not exist yet.
bool is_remote(std::string path) {
  long result = sys::is_remote(path.c_str());
  for (; result < 0 && !is_root(path); result = sys::is_remote(path.c_str()))
    path = parent_of(path);
  return result > 0;
}

// How often a path that appears and disappears meanwhile is tried.
constexpr int kAttempts = 8;

}  // namespace

FileStatus file_status_of(const struct stat& status) {
  return {.device = static_cast<std::uint64_t>(status.st_dev),
          .inode = status.st_ino,
          .links =
              std::max<std::uint64_t>(status.st_nlink, 1),  // Some file systems do not count links.
          .special_device = static_cast<std::uint64_t>(status.st_rdev),
          .size = status.st_size,
          .mode = status.st_mode,
          .uid = status.st_uid,
          .gid = status.st_gid,
          .accessed = to_time(sys::accessed(status)),
          .modified = to_time(sys::modified(status)),
          .changed = to_time(sys::changed(status))};
}

PathWatch::PathWatch(LoopCore& loop) : loop_(loop) {
  inotify_node_.head.priority = kDirect;
  inotify_node_.head.context = this;
  inotify_node_.head.callback = [](void* context, Node&, Events events) {
    auto* paths = static_cast<PathWatch*>(context);
    any(events & Events::error) ? paths->do_without_inotify() : paths->on_inotify();
  };
}

std::error_code PathWatch::check(const char* path) {
  if (path == nullptr || *path == '\0') return {EINVAL, std::system_category()};
  if (std::strlen(path) >= PATH_MAX) return {ENAMETOOLONG, std::system_category()};
  return {};
}

std::error_code PathWatch::start(StatNode& node) {
  if (const std::error_code error = check(node.path)) return error;
  if (loop_.is_foreign()) return Error::loop_forked;  // The inotify may be the parent's.
  node.poll = {};
  node.poll.head.priority = kDirect;
  node.poll.head.context = this;
  node.poll.head.callback = [](void* context, Node& head, Events) {
    auto* owner = reinterpret_cast<char*>(&head) - offsetof(StatNode, poll);
    static_cast<PathWatch*>(context)->look_at(*reinterpret_cast<StatNode*>(owner));
  };
  node.poll.repeat = node.interval;
  node.watch = -1;
  add_watch(node);
  refresh(node);
  node.previous = node.current;
  if (!poll_too(node)) {
    drop_watch(node);
    return {ENOMEM, std::system_category()};
  }
  node.next = first_;
  first_ = &node;
  node.head.active = 1;
  return {};
}

void PathWatch::stop(StatNode& node) {
  StatNode** link = &first_;
  while (*link != &node) link = &(*link)->next;
  *link = node.next;
  node.head.active = 0;
  if (node.poll.head.active != 0) loop_.stop_timer(node.poll);
  drop_watch(node);
  if (first_ == nullptr && inotify_.is_open()) {
    loop_.stop_fd_before_close(inotify_node_);
    inotify_ = sys::Descriptor();
  }
}

void PathWatch::stop_all() {
  while (first_ != nullptr) stop(*first_);
}

void PathWatch::refresh(StatNode& node) { node.current = look(node); }

// The inotify is shared with the parent: the child needs its own.
void PathWatch::after_fork() {
  if (!inotify_.is_open()) return;
  loop_.stop_fd_before_close(inotify_node_);
  inotify_ = sys::Descriptor();
  for (StatNode* node = first_; node != nullptr; node = node->next) {
    node->watch = -1;
    add_watch(*node);
    poll_too(*node);
  }
  has_unreported_ = true;  // Events before the new watches were lost.
  loop_.request_slow_turn();
}

// ---- inotify

bool PathWatch::open_inotify() {
  if (inotify_.is_open()) return true;
  if (inotify_refused_) return false;
  const long fd = sys::inotify_create();
  if (fd < 0) return false;
  sys::Descriptor inotify(fd);
  inotify_node_.fd = inotify.get();
  inotify_node_.events = static_cast<std::uint32_t>(Events::read) | kFdIsNew;
  if (!loop_.start_fd(inotify_node_)) return false;
  inotify_ = std::move(inotify);
  return true;
}

// A path that appears and disappears too fast, or that is behind a dangling link, is polled.
void PathWatch::add_watch(StatNode& node) {
  if (!open_inotify()) return;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const long error = watch_file(node, node.path, follow_of(node));
    if (error == -EACCES) watch_file(node, parent_of(node.path).c_str(), sys::Follow::yes);
    if (!is_missing(error) || watch_nearest_parent(node)) return;
  }
}

// Returns 0, or a negated errno.
long PathWatch::watch_file(StatNode& node, const char* path, sys::Follow follow) {
  const long watch = sys::inotify_add(inotify_.get(), path, follow);
  node.watch = watch < 0 ? -1 : static_cast<int>(watch);
  return watch < 0 ? watch : 0;
}

// Watches the nearest existing directory, below which a missing path will be created. False if the
// path was created before the directory was watched.
bool PathWatch::watch_nearest_parent(StatNode& node) {
  std::string missing = node.path;
  long error = -ENOENT;
  while (is_missing(error) && !is_root(missing)) {
    std::string directory = parent_of(missing);
    error = watch_file(node, directory.c_str(), sys::Follow::yes);
    if (is_missing(error)) missing = std::move(directory);
  }
  if (error < 0 || !look(missing.c_str(), follow_of(node)).exists()) return true;
  drop_watch(node);
  return false;
}

// The kernel has one watch for all nodes of one file.
void PathWatch::drop_watch(StatNode& node) {
  const int watch = node.watch;
  node.watch = -1;
  if (watch < 0 || loop_.is_foreign()) return;
  for (const StatNode* other = first_; other != nullptr; other = other->next) {
    if (other != &node && other->watch == watch) return;
  }
  sys::inotify_remove(inotify_.get(), watch);
}

// Runs the polling timer while inotify does not see everything. False when memory runs out.
bool PathWatch::poll_too(StatNode& node) {
  const bool needed =
      node.watch < 0 || is_remote(node.path) || (node.follow_links && sys::is_link(node.path));
  if (needed == (node.poll.head.active != 0)) return true;
  const Nanos next = deadline_after(loop_.now(), Nanos{node.interval});
  if (needed) return loop_.restart_timer(node.poll, next.count());
  loop_.stop_timer(node.poll);
  return true;
}

// The backend has refused the descriptor: from here on everything is polled.
void PathWatch::do_without_inotify() {
  inotify_refused_ = true;
  inotify_ = sys::Descriptor();
  for (StatNode* node = first_; node != nullptr; node = node->next) {
    node->watch = -1;
    poll_too(*node);
  }
}

void PathWatch::on_inotify() {
  sys::for_each_change(inotify_.get(),
                       [this](int watch, bool is_gone) { on_watch_event(watch, is_gone); });
}

// Watch -1 means that events were lost: anything may have changed.
void PathWatch::on_watch_event(int watch, bool is_gone) {
  for (StatNode* node = first_; node != nullptr;) {
    StatNode* next = node->next;
    if (watch < 0 || node->watch == watch) {
      if (is_gone) node->watch = -1;
      look_at(*node);
    }
    node = next;
  }
}

void PathWatch::report_again() {
  has_unreported_ = false;
  on_watch_event(-1, false);
}

// Sets the watch again before reading the status, so that no change falls in between.
void PathWatch::look_at(StatNode& node) {
  const int before = node.watch;
  const FileStatus first_look = look(node);
  if (before < 0 || first_look.inode != node.current.inode || !first_look.exists()) {
    drop_watch(node);
    add_watch(node);
  }
  poll_too(node);
  const FileStatus now = look(node);
  if (now == node.current) return;
  if (!loop_.deliver(node.head, Events::stat)) {
    has_unreported_ = true;
    loop_.request_slow_turn();
    return;
  }
  node.previous = node.current;
  node.current = now;
}

}  // namespace spate
