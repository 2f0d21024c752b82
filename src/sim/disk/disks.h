// Disks: the simulated disks of all hosts, by host and path.
#pragma once

#include <dirent.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/disk/disk_file.h"
#include "sim/disk/disk_tree.h"
#include "spate/sim/disk.h"

namespace spate::sim {

class Kernel;

// A path on a disk.
struct DiskPath {
  std::shared_ptr<DiskTree> tree;
  DiskTree::NodePointer from;
  std::string path;  // Relative to `from`.
};

class Disks {
 public:
  explicit Disks(Kernel& kernel) : kernel_(kernel) {}

  Disk& mount(int host, std::string_view path, const DiskOptions& options);
  // Returns the place of a path of the running host; without a tree if it is not on a disk.
  DiskPath find(std::string_view path) const;
  DiskPath find(int directory, std::string_view path) const;
  // Returns a new instance of inotify, or an error: ENOSYS on a host without disks.
  std::expected<std::shared_ptr<Inotify>, long> make_inotify();
  void cut_power(int host);
  void power_on(int host);

  // ---- directories that are being listed
  DIR* open_listing(int fd, const DiskFile& directory);
  // Returns nullptr for a stream of the system.
  DiskListing* listing_of(DIR* stream);
  void close_listing(DIR* stream);

 private:
  struct OfHost {
    std::shared_ptr<InotifyLimits> limits = std::make_shared<InotifyLimits>();
    std::vector<std::shared_ptr<DiskTree>> trees;
    std::vector<std::unique_ptr<Disk>> disks;
  };

  Kernel& kernel_;
  std::map<int, OfHost> hosts_;
  std::map<const void*, std::unique_ptr<DiskListing>> listings_;
};

}  // namespace spate::sim
