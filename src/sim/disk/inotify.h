// Inotify: an instance of inotify(7) for the files of simulated disks.
#pragma once

#include <sys/inotify.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/disk/disk_node.h"
#include "sim/kernel/file.h"

namespace spate::sim {

// The limits of a host, and how much of them is used.
struct InotifyLimits {
  std::size_t max_instances = 128;
  std::size_t max_watches = 8192;
  std::size_t max_queued = 16384;
  std::size_t instances = 0;
  std::size_t watches = 0;
};

class Inotify final : public File {
 public:
  explicit Inotify(std::shared_ptr<InotifyLimits> limits);
  ~Inotify() override;

  std::uint32_t ready() const override { return records_.empty() ? 0u : EPOLLIN; }
  long read(std::span<std::byte> room) override;
  const char* tag() const override { return &kFileTag<Inotify>; }

  // As inotify_add_watch() and inotify_rm_watch().
  long add(const std::shared_ptr<DiskNode>& node, std::uint32_t mask);
  long remove(int watch);

  // Queues a record of a watch.
  void report(int watch, std::uint32_t mask, std::uint32_t cookie, std::string_view name);
  // Ends the watch of a node that is gone.
  void end(int watch);

 private:
  struct Record {
    int watch = -1;
    std::uint32_t mask = 0;
    std::uint32_t cookie = 0;
    std::string name;

    bool operator==(const Record&) const = default;
    std::size_t size() const;
  };

  const std::shared_ptr<InotifyLimits> limits_;
  std::map<int, std::weak_ptr<DiskNode>> watched_;
  std::deque<Record> records_;
  int last_watch_ = 0;
};

}  // namespace spate::sim
