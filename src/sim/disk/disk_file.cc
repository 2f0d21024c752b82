#include "sim/disk/disk_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace spate::sim {

DiskFile::DiskFile(std::shared_ptr<DiskTree> tree, DiskTree::NodePointer node, int flags)
    : tree_(std::move(tree)),
      node_(std::move(node)),
      flags_(flags & (O_ACCMODE | O_APPEND | O_PATH)),
      generation_(tree_->generation()) {
  tree_->note_open(*node_);
}

DiskFile::~DiskFile() {
  if (check() == 0) tree_->note_close(node_, may(O_WRONLY));
}

bool DiskFile::may(int access) const {
  const int own = flags_ & O_ACCMODE;
  return (flags_ & O_PATH) == 0 && (own == O_RDWR || own == access);
}

long DiskFile::check() const {
  return tree_->is_on() && tree_->generation() == generation_ ? 0 : -EIO;
}

long DiskFile::read(std::span<std::byte> room) {
  const long count = read_at(room, offset_, true);
  if (count > 0) offset_ += static_cast<std::uint64_t>(count);
  return count;
}

long DiskFile::write(std::span<const std::byte> bytes) {
  const long count = write_at(bytes, offset_);
  if (count < 0) return count;
  offset_ =
      (flags_ & O_APPEND) != 0 ? node_->bytes.size() : offset_ + static_cast<std::uint64_t>(count);
  return count;
}

long DiskFile::read_at(std::span<std::byte> room, std::uint64_t offset, bool may_wait) {
  if (!may(O_RDONLY)) return -EBADF;
  if (const long error = check(); error < 0) return error;
  return tree_->read(*node_, room, offset, may_wait);
}

// Linux appends to a file of O_APPEND in pwrite(), too.
long DiskFile::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (!may(O_WRONLY)) return -EBADF;
  if (const long error = check(); error < 0) return error;
  return tree_->write(*node_, bytes, (flags_ & O_APPEND) != 0 ? node_->bytes.size() : offset);
}

long DiskFile::resize(std::uint64_t size) {
  if (!may(O_WRONLY)) return -EINVAL;
  if (const long error = check(); error < 0) return error;
  return tree_->resize(*node_, size);
}

long DiskFile::sync() {
  if (const long error = check(); error < 0) return error;
  return tree_->sync(node_);
}

}  // namespace spate::sim
