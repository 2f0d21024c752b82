// Watch: reports which files of a directory tree change, by name. It uses inotify.
//
//   auto watch = Watch::start(loop, "/etc/app", [](Result<std::span<const WatchEvent>> events) {
//     if (!events) return stop_watching(events.error());
//     for (const WatchEvent& event : *events)
//       std::println("{} {}", name_of(event.change), event.path);
//   });
//
// A scope is a tree, one directory, or one file. A new directory in a tree is watched as soon as it
// appears. It is then listed, and everything in it is reported as created. So a file that was
// created before the directory was watched is reported at least once, perhaps twice. A symbolic
// link in a tree is an entry like a file: it is not followed. A link at the end of the root's path
// is.
//
// Events: they arrive in the order of the changes. With WatchOptions::existing, a program that
// applies them, and forgets the entries below `path` at Change::overflow, has the tree on disk when
// nothing changes any more. Without it, the program looks at the tree itself, at the first
// Change::ready and at each overflow. Events that follow may then describe changes which it has
// already seen: those that happened while it looked. An event describes the past: when the callback
// is called, the file may be gone. Names are bytes, of any encoding.
// The kernel does not report changes by mmap(), through a hard link outside the scope, and by other
// machines on a network file system; nor changes in /proc and /sys.
//
// Ownership: destroying the Watch stops it. It may be destroyed, moved or stopped inside its
// callback. A Watch may outlive its loop, and is then only destroyed.
// Threads: the loop's thread only. Directories are listed on a thread pool, so a slow disk does not
// block the loop.
// Callbacks: the callback is called from the loop, never inside start(). The events of one read
// from the kernel, or of at most 1,024 listed entries, are passed in one call, and there is at most
// one such read in a turn: other callbacks run in between. The events are valid during the call.
// An active Watch keeps its loop alive.
// In the child of a fork, after Loop::after_fork(), it watches with an inotify instance of the
// child, and reports Change::overflow. In a World (spate/sim) it watches a Disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/offload.h"

namespace spate {

class Loop;
class WatchState;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT WatchStateEnd {
  void operator()(WatchState* state) const;
};

enum class WatchScope : std::uint8_t {
  tree,       // A directory and all below it.
  directory,  // A directory and its entries, but not the entries of directories in it.
  // A file, which need not exist. It may be replaced or removed and made again: its directory is
  // watched.
  file,
};

enum class Change : std::uint8_t {
  // Also: linked, or moved here from outside the scope. A directory counts as empty then: all its
  // entries are reported afterwards.
  created,
  changed,  // Bytes were written, or the file was truncated. Not for directories.
  // The file is complete: a program closed it that had opened it for writing, or moved it here from
  // outside the scope.
  written,
  attributes,  // Mode, owner, times, or the number of links. Only with WatchOptions::attributes.
  // Also: moved out of the scope. For a directory, everything below it is gone as well.
  removed,
  // Renamed from `old_path` to `path`, which it replaced if that existed. For a directory,
  // everything below it was moved as well.
  moved,
  // The scope is watched completely: once after the start, and again after each overflow. Before
  // the first, changes may be missing.
  ready,
  // Events were lost, because changes were faster than the callback or because of a fork. The
  // program must look at everything below `path` again; later changes are reported. Events of
  // earlier changes are dropped. With WatchOptions::existing, everything below `path` is reported
  // again as created and found, before the next ready.
  overflow,
  // The directory `path` cannot be watched or listed, because of `error`. Changes in it are not
  // reported; the rest of the tree is watched. It is tried again after it was moved and after an
  // overflow.
  unwatched,
};
SPATE_EXPORT std::string_view name_of(Change change);  // "created", "changed", ...

struct WatchEvent {
  Change change{};
  bool is_directory = false;
  // It was found by listing a directory, and not reported by the kernel when it was created. A file
  // may be complete then: if its writer has closed it before, no Change::written follows.
  bool is_found = false;
  // Relative to the root, without a slash at the ends. Empty: the root itself. In WatchScope::file
  // it is the name of the file.
  std::string_view path{};
  std::string_view old_path{};  // Change::moved only.
  std::error_code error{};      // Change::unwatched only: ENOSPC, EACCES, EMFILE, ENAMETOOLONG, ...
};

// Receives events, or the error that ends the watch: ENOENT when the root was removed or moved (for
// WatchScope::file, its directory), ENODEV when its file system was unmounted, an error of start()
// in the child of a fork, an error of ThreadPool::start(), or ENOMEM. After an error it is not
// called again.
using OnWatch = Function<void(Result<std::span<const WatchEvent>>)>;

struct WatchOptions {
  WatchScope scope = WatchScope::tree;
  // Reports what exists at the start, and after an overflow, as created and found, before ready.
  bool existing = false;
  bool changed = true;      // Reports Change::changed. Without it, writers cause fewer wake-ups.
  bool attributes = false;  // Reports Change::attributes.
  ThreadPool* pool = &ThreadPool::shared();  // Must outlive the Watch.
};

class SPATE_EXPORT Watch {
 public:
  // Starts to watch `path`. A relative path is relative to the present working directory. The root
  // is looked up at once (blocking, as stat() does); directories below it are watched later.
  // Errors: ENOENT, EACCES, ELOOP; ENOTDIR if `path` is not a directory and the scope is not a
  // file; EINVAL for an empty path, one with a zero byte, or, in WatchScope::file, one that does
  // not end with a name; ENAMETOOLONG; EMFILE when the user has too many inotify instances
  // (fs.inotify.max_user_instances, 128 by default: one per Watch) or the process too many
  // descriptors; ENOSPC when the user watches too many directories
  // (fs.inotify.max_user_watches); ENOSYS in a World for a path that is not on a
  // Disk; ENOMEM; Error::loop_forked.
  static Result<Watch> start(Loop& loop, std::string_view path, OnWatch on_watch,
                             const WatchOptions& options = {});

  // Makes an inactive Watch.
  Watch() = default;
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&&) noexcept = default;
  ~Watch() = default;

  // False after stop(), after an error was passed to the callback, and after the loop's
  // destruction.
  bool is_active() const;
  // Stops. No callback follows.
  void stop() { state_.reset(); }

  // Makes no calls until resume(). The kernel queues events meanwhile, 16,384 by default
  // (fs.inotify.max_queued_events); if there are more, Change::overflow follows. A paused Watch
  // does not keep the loop alive.
  void pause();
  void resume();
  bool is_paused() const;

  // Returns the absolute path of the root; empty if stopped.
  std::string_view root() const;

 private:
  explicit Watch(WatchState* state) : state_(state) {}

  std::unique_ptr<WatchState, WatchStateEnd> state_;
};

}  // namespace spate
