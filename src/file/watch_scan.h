// The part of a Watch that runs on a thread of the pool: it watches directories and lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "file/file_work.h"
#include "sys/descriptor.h"

namespace spate {

// A directory to watch and to list.
struct ScanTarget {
  std::uint64_t id = 0;
  std::string path;
  bool is_root = false;  // A link at the end of the root's path is followed.
};

// The names in a directory, one after the other in one string.
class Listing {
 public:
  struct Entry {
    std::string_view name;
    bool is_directory;
  };

  void add(std::string_view name, bool is_directory) {
    names_.append(name);
    entries_.push_back({names_.size(), is_directory});
  }
  std::size_t size() const { return entries_.size(); }
  Entry at(std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : entries_[index - 1].end;
    return {std::string_view(names_).substr(begin, entries_[index].end - begin),
            entries_[index].is_directory};
  }

 private:
  struct Place {
    std::size_t end;
    bool is_directory;
  };

  std::string names_;
  std::vector<Place> entries_;
};

struct ScannedDirectory {
  std::uint64_t id = 0;
  long watch = -1;  // Or a negated errno: of the watch.
  long error = 0;   // A negated errno: it is watched, but could not be listed.
  Listing listing;
};

struct Scan {
  std::shared_ptr<sys::Descriptor> inotify;
  std::uint32_t mask = 0;
  std::vector<int> unwanted;  // Watches to remove first.
  std::vector<ScanTarget> targets;
};

// Scans at least one target, and at most as many as have a few thousand entries together. Each
// directory is watched before it is listed, so no entry is missed. The results are those of the
// first targets.
std::vector<ScannedDirectory> run_scan(const Scan& scan, const Cancelled& is_cancelled);

}  // namespace spate
