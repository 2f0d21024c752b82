// Disk: a simulated file system of a Host, below one path. It takes time, has a capacity, and loses
// unsynced data at a power cut.
//
//   sim::Disk& disk = host.mount("/data", {.latency = 5ms});
//   host.boot([](Loop& loop) { return std::make_unique<Journal>(loop, "/data/journal"); });
//   world.run_for(10s);
//   host.crash();  // Cuts the power.
//   host.restart();
//   EXPECT_TRUE(is_valid(disk.read("journal").value_or("")));
//
// The library's files are on it: File, read_file() and the like, Watch, Stat, send_file(),
// http::Files. The program's own system calls, std::fstream for example, go to the real system.
// Failing calls come from World::fail_calls(): "read.EIO=.1,write.short=.5,fsync.EIO@2".
//
// Time: a read of bytes that are not in the page cache, and a sync, suspend the calling thread for
// the latency: a thread of a pool, or a loop that calls back. Other calls take no time, nor does
// code in Host::run().
//
// Power cuts: Host::crash() leaves a state that a journaling file system may leave. Each 4 KiB
// block that was written after the last sync of its file is the old one or the new one, by the
// seed. So is the size. Names that were created, renamed or removed after the last sync of their
// directories are lost from some change on, in their order. A sync of a file does not sync its
// name.
//
// Not simulated: links, modes and owners (they are recorded, and not checked), locks, and inotify's
// events of removed files that are still open.
//
// Threads: those of World.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/time.h"

namespace spate::sim {

class DiskTree;

struct DiskOptions {
  // The time of a read that is not in the page cache, and of a sync, with a random addition up to
  // `jitter`, by the seed. Negative counts as zero.
  Nanos latency{0};
  Nanos jitter{0};
  std::uint64_t capacity = UINT64_MAX;  // Bytes of all files: ENOSPC.
  // The limits of inotify: instances and directories (EMFILE, ENOSPC), and events of an instance,
  // above which it reports an overflow.
  std::size_t max_user_instances = 128;
  std::size_t max_user_watches = 8192;
  std::size_t max_queued_events = 16384;
};

// The functions act as another program of the host: at once, and without faults. They cause the
// events of Watch. Paths are relative to the disk; a leading slash is ignored. They return the
// system's errors.
class SPATE_EXPORT Disk {
 public:
  explicit Disk(std::shared_ptr<DiskTree> tree) : tree_(std::move(tree)) {}
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // Returns the content of a file with all unsynced bytes, or ENOENT or EISDIR.
  Result<std::string> read(std::string_view path) const;
  // Replaces the content of a file, which is created if it does not exist.
  std::error_code write(std::string_view path, std::string_view content);
  // Creates a directory, as mkdir(2).
  std::error_code make_directory(std::string_view path);
  // Replaces `to`, as rename(2).
  std::error_code rename(std::string_view from, std::string_view to);
  // Removes a file, or an empty directory.
  std::error_code remove(std::string_view path);
  // Returns the paths of all files and directories, sorted; a directory ends with a slash.
  std::vector<std::string> list() const;

  // Writes everything to the disk, as sync(2).
  void sync();
  // Empties the page cache: the next reads take time.
  void drop_caches();
  // Replaces the options from now on.
  void set_options(const DiskOptions& options);
  // Returns the bytes of all files.
  std::uint64_t used() const;

 private:
  const std::shared_ptr<DiskTree> tree_;
};

}  // namespace spate::sim
