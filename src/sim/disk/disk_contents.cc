// DiskTree's contents: reading, writing, and what a power cut leaves.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/disk/disk_tree.h"
#include "sim/kernel/kernel.h"

namespace spate::sim {

namespace {

constexpr std::size_t kBlock = DiskNode::kBlock;

// Calls `visit` with each file and directory below a directory, and then with the directory.
template <class Visit>
void visit_all(DiskNode& node, const Visit& visit) {
  for (const auto& [name, child] : node.entries) visit_all(*child, visit);
  visit(node);
}

// Returns a block of a content, filled up with zeros.
std::string block_of(const std::string& content, std::size_t at) {
  std::string block = at < content.size() ? content.substr(at, kBlock) : std::string();
  block.resize(kBlock);
  return block;
}

}  // namespace

void DiskTree::touch(DiskNode& node) { node.modified = kernel_.wall(); }

// A callback waits as well: it delays its loop. Code in Host::run() is outside of time.
bool DiskTree::takes_time() const {
  if (kernel_.is_tearing_down) return false;
  if (Thread::current() != nullptr) return true;
  const Loop* const loop = kernel_.host == Kernel::kNoHost ? nullptr : kernel_.loop_of(host_);
  return loop != nullptr && loop->depth() > 0;
}

void DiskTree::wait() {
  const auto jitter = static_cast<std::uint64_t>(std::max(options_.jitter, Nanos{0}).count());
  const auto drawn = kernel_.draw(Purpose::disk, ++draws_) % (jitter + 1);
  const Nanos time = std::max(options_.latency, Nanos{0}) + Nanos{static_cast<long>(drawn)};
  if (time != Nanos{0} && takes_time())
    kernel_.wait([this] { return kernel_.is_tearing_down; }, deadline_after(kernel_.now(), time));
}

std::uint64_t DiskTree::used() const {
  std::uint64_t size = 0;
  visit_all(*root_, [&size](const DiskNode& node) { size += node.bytes.size(); });
  return size;
}

std::uint64_t DiskTree::room() const {
  const std::uint64_t size = used();
  return size < options_.capacity ? options_.capacity - size : 0;
}

long DiskTree::read(DiskNode& node, std::span<std::byte> room, std::uint64_t offset,
                    bool may_wait) {
  if (node.is_directory) return -EISDIR;
  if (offset >= node.bytes.size() || room.empty()) return 0;
  std::size_t size = std::min<std::size_t>(room.size(), node.bytes.size() - offset);
  bool waits = false;
  for (std::size_t block = offset / kBlock; block <= (offset + size - 1) / kBlock; ++block) {
    if (node.cached.contains(block)) continue;
    waits = true;
    if (may_wait) {
      node.cached.insert(block);
    } else {
      const std::size_t begin = block * kBlock;
      if (begin <= offset) return -EAGAIN;
      size = begin - offset;
      break;
    }
  }
  if (waits && may_wait) wait();
  if (offset >= node.bytes.size()) return 0;  // It was truncated meanwhile.
  size = std::min<std::size_t>(size, node.bytes.size() - offset);
  std::memcpy(room.data(), node.bytes.data() + offset, size);
  return static_cast<long>(size);
}

long DiskTree::write(DiskNode& node, std::span<const std::byte> bytes, std::uint64_t offset) {
  if (bytes.empty()) return 0;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
  if (offset > kLargest || bytes.size() > kLargest - offset) return -EFBIG;
  const std::size_t end = offset + bytes.size();
  const std::size_t size = node.bytes.size();
  const std::size_t grows = end > size ? end - size : 0;
  const std::size_t lacks = grows - std::min<std::uint64_t>(grows, room());
  if (lacks >= bytes.size()) return -ENOSPC;
  const std::size_t count = bytes.size() - lacks;
  if (offset + count > size) node.bytes.resize(offset + count);
  std::memcpy(node.bytes.data() + offset, bytes.data(), count);
  for (std::size_t block = offset / kBlock; block <= (offset + count - 1) / kBlock; ++block)
    node.cached.insert(block);
  touch(node);
  report(node, IN_MODIFY);
  return static_cast<long>(count);
}

long DiskTree::resize(DiskNode& node, std::uint64_t size) {
  if (size > node.bytes.size() && size - node.bytes.size() > room()) return -ENOSPC;
  node.bytes.resize(size);
  touch(node);
  report(node, IN_MODIFY);
  return 0;
}

void DiskTree::note_close(const NodePointer& node, bool was_written) {
  report(*node, was_written ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
  if (--node->opens == 0 && !node->is_linked()) forget(*node);
}

void DiskTree::status_of(const DiskNode& node, struct stat& status) const {
  status = {};
  status.st_dev = static_cast<dev_t>(host_ + 1);
  status.st_ino = node.inode;
  status.st_mode = node.permissions | (node.is_directory ? S_IFDIR : S_IFREG);
  status.st_nlink = !node.is_linked() ? 0 : node.is_directory ? 2 : 1;
  status.st_size = static_cast<off_t>(node.bytes.size());
  status.st_blksize = kBlock;
  status.st_blocks = static_cast<blkcnt_t>((node.bytes.size() + 511) / 512);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(node.modified);
  status.st_mtim = {.tv_sec = seconds.count(), .tv_nsec = (node.modified - seconds).count()};
  status.st_ctim = status.st_mtim;
  status.st_atim = status.st_mtim;
}

// ---- the disk

// A directory's sync commits the changes up to the last one of its names; a file's sync none.
long DiskTree::sync(const NodePointer& node) {
  wait();
  if (!is_on_) return -EIO;
  if (!node->is_directory) {
    node->durable = node->bytes;
    return 0;
  }
  std::size_t count = changes_.size();
  const auto is_of_node = [&node](const Change::Entry& entry) { return entry.directory == node; };
  while (count > 0 && !std::ranges::any_of(changes_[count - 1].entries, is_of_node)) --count;
  commit(count);
  return 0;
}

void DiskTree::commit(std::size_t count) {
  for (; count > 0; --count) {
    for (const Change::Entry& entry : changes_.front().entries) {
      DiskNode::Entries& entries = entry.directory->durable_entries;
      if (entry.node == nullptr)
        entries.erase(entry.name);
      else
        entries[entry.name] = entry.node;
    }
    changes_.pop_front();
  }
}

void DiskTree::sync_all() {
  commit(changes_.size());
  visit_all(*root_, [](DiskNode& node) { node.durable = node.bytes; });
}

void DiskTree::drop_caches() {
  visit_all(*root_, [](DiskNode& node) { node.cached.clear(); });
}

void DiskTree::cut_power() {
  is_on_ = false;
  commit(kernel_.draw(Purpose::disk, ++draws_) % (changes_.size() + 1));
  changes_.clear();
  visit_all(*root_, [](DiskNode& node) { node.parent = nullptr; });
  restore(*root_);
}

void DiskTree::restore(DiskNode& directory) {
  directory.entries = directory.durable_entries;
  directory.marks.clear();
  directory.opens = 0;
  for (const auto& [name, child] : directory.entries) {
    child->parent = &directory;
    child->name = name;
    child->is_directory ? restore(*child) : restore_content(*child);
  }
}

void DiskTree::restore_content(DiskNode& file) {
  file.cached.clear();
  file.marks.clear();
  file.opens = 0;
  if (file.bytes == file.durable) return;
  const auto draw = [this](std::uint64_t bound) {
    return kernel_.draw(Purpose::disk, ++draws_) % bound;
  };
  const std::size_t size = draw(2) == 0 ? file.durable.size() : file.bytes.size();
  std::string left;
  for (std::size_t at = 0; at < size; at += kBlock)
    left += block_of(draw(2) == 0 ? file.durable : file.bytes, at);
  left.resize(size);
  file.bytes = left;
  file.durable = std::move(left);
}

}  // namespace spate::sim
