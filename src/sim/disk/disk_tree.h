// DiskTree: the files of a simulated disk, and the part of them that survives a power cut.
//
// Functions return zero or more, or a negated errno. A path is relative to a directory; ".." does
// not leave the disk.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/disk/disk_node.h"
#include "sim/disk/inotify.h"
#include "spate/sim/disk.h"

namespace spate::sim {

class Kernel;

class DiskTree {
 public:
  using NodePointer = std::shared_ptr<DiskNode>;
  using Found = std::expected<NodePointer, long>;

  DiskTree(Kernel& kernel, int host, std::string path, std::shared_ptr<InotifyLimits> limits);
  ~DiskTree();
  DiskTree(const DiskTree&) = delete;
  DiskTree& operator=(const DiskTree&) = delete;

  const std::string& path() const { return path_; }
  const NodePointer& root() const { return root_; }
  int host() const { return host_; }
  void set_options(const DiskOptions& options);
  void set_limits(std::shared_ptr<InotifyLimits> limits) { limits_ = std::move(limits); }
  std::uint64_t used() const;

  // ---- names
  Found find(const NodePointer& from, std::string_view path) const;
  // As open(2), without opening.
  Found open(const NodePointer& from, std::string_view path, int flags, mode_t permissions);
  long make_directory(const NodePointer& from, std::string_view path, mode_t permissions);
  long remove(const NodePointer& from, std::string_view path, bool is_directory);
  long rename(const NodePointer& from, std::string_view path, const NodePointer& to,
              std::string_view new_path);

  // ---- contents
  void note_open(DiskNode& node) { ++node.opens; }
  void note_close(const NodePointer& node, bool was_written);
  long read(DiskNode& node, std::span<std::byte> room, std::uint64_t offset, bool may_wait);
  long write(DiskNode& node, std::span<const std::byte> bytes, std::uint64_t offset);
  long resize(DiskNode& node, std::uint64_t size);
  long sync(const NodePointer& node);
  void status_of(const DiskNode& node, struct stat& status) const;

  // ---- the whole disk
  void sync_all();
  void drop_caches();
  // Keeps what survives. Calls fail with EIO until power_on().
  void cut_power();
  void power_on() { ++generation_, is_on_ = true; }
  bool is_on() const { return is_on_; }
  // Descriptors of an earlier generation are those of a program that is gone.
  std::uint64_t generation() const { return generation_; }

 private:
  // A name in a directory, which may not exist.
  struct Place {
    NodePointer directory;
    std::string name;
  };
  // Changes of names that happen together.
  struct Change {
    struct Entry {
      NodePointer directory;
      std::string name;
      NodePointer node;  // nullptr: removed.
    };
    std::vector<Entry> entries;
  };

  std::expected<Place, long> place(const NodePointer& from, std::string_view path) const;
  NodePointer make(bool is_directory, mode_t permissions);
  void set(Change change);
  void commit(std::size_t count);
  void restore(DiskNode& directory);
  void restore_content(DiskNode& file);
  bool takes_time() const;
  void wait();
  void touch(DiskNode& node);
  std::uint64_t room() const;
  // Reports an event of the node to its watches and to those of its directory.
  void report(DiskNode& node, std::uint32_t mask);
  void report_to(DiskNode& node, std::uint32_t mask);
  void report_name(DiskNode& directory, std::string_view name, const DiskNode& node,
                   std::uint32_t mask, std::uint32_t cookie);
  void unlink(const NodePointer& node);
  void forget(DiskNode& node);

  Kernel& kernel_;
  const int host_;
  const std::string path_;
  std::shared_ptr<InotifyLimits> limits_;
  DiskOptions options_;
  NodePointer root_;
  std::deque<Change> changes_;  // Not synced yet.
  std::uint64_t inodes_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t draws_ = 0;
  std::uint32_t cookies_ = 0;
  bool is_on_ = true;
};

}  // namespace spate::sim
