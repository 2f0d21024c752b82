// DiskFile: an open file or directory of a simulated disk.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/disk/disk_tree.h"
#include "sim/kernel/file.h"

namespace spate::sim {

class DiskFile final : public File {
 public:
  DiskFile(std::shared_ptr<DiskTree> tree, DiskTree::NodePointer node, int flags);
  ~DiskFile() override;

  const char* tag() const override { return &kFileTag<DiskFile>; }
  std::uint32_t ready() const override { return EPOLLIN | EPOLLOUT; }
  bool is_pollable() const override { return false; }
  int access() const override { return flags_; }
  // Use the file's offset.
  long read(std::span<std::byte> room) override;
  long write(std::span<const std::byte> bytes) override;

  const std::shared_ptr<DiskTree>& tree() const { return tree_; }
  const DiskTree::NodePointer& node() const { return node_; }
  long read_at(std::span<std::byte> room, std::uint64_t offset, bool may_wait);
  long write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  long resize(std::uint64_t size);
  long sync();

 private:
  bool may(int access) const;
  // Returns 0, or EIO after a power cut.
  long check() const;

  const std::shared_ptr<DiskTree> tree_;
  const DiskTree::NodePointer node_;
  const int flags_;
  const std::uint64_t generation_;
  std::uint64_t offset_ = 0;
};

// A directory that is being listed: the entries that it had when it was opened.
struct DiskListing {
  int fd = -1;
  std::vector<dirent> entries;
  std::size_t next = 0;
};

}  // namespace spate::sim
