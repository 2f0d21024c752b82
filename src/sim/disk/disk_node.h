// DiskNode: a file or directory of a simulated disk.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "spate/time.h"

namespace spate::sim {

class Inotify;

// A watch of inotify.
struct InotifyMark {
  Inotify* owner;
  int watch;
  std::uint32_t mask;
};

struct DiskNode : std::enable_shared_from_this<DiskNode> {
  static constexpr std::size_t kBlock = 4096;
  using Entries = std::map<std::string, std::shared_ptr<DiskNode>, std::less<>>;

  bool is_linked() const { return parent != nullptr || is_root; }

  std::uint64_t inode = 0;
  bool is_directory = false;
  bool is_root = false;
  mode_t permissions = 0;
  Nanos modified{0};           // By the wall clock.
  DiskNode* parent = nullptr;  // nullptr: the root, or removed.
  std::string name;
  std::vector<InotifyMark> marks;

  // ---- a file
  std::string bytes;
  std::string durable;           // As of the last sync.
  std::set<std::size_t> cached;  // Blocks in the page cache.
  std::size_t opens = 0;

  // ---- a directory
  Entries entries;
  Entries durable_entries;
};

}  // namespace spate::sim
