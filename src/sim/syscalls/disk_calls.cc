// The calls on files and paths: to a simulated disk, or to the system for other paths.

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "sim/disk/disks.h"
#include "sim/syscalls/returned.h"
#include "sim/syscalls/simulation.h"

namespace spate::sim {

namespace {

// Returns the open file; nullptr if it is none of a disk.
std::shared_ptr<DiskFile> disk_file_at(int fd) {
  const Kernel* kernel = Kernel::current();
  return kernel == nullptr ? nullptr : file_cast<DiskFile>(kernel->find(fd));
}

DiskPath disk_path(int directory, const char* path) {
  Simulation* simulation = Simulation::current();
  return simulation == nullptr || path == nullptr ? DiskPath{}
                                                  : simulation->disks.find(directory, path);
}

long open_on(const DiskPath& at, int flags, mode_t permissions) {
  Kernel& kernel = *Kernel::current();
  if (const long result = kernel.may_open(); result < 0) return result;
  const DiskTree::Found found = at.tree->open(at.from, at.path, flags, permissions);
  if (!found) return found.error();
  return kernel.open(std::make_shared<DiskFile>(at.tree, *found, flags));
}

long status_on(const DiskPath& at, struct stat& status) {
  const DiskTree::Found found = at.tree->find(at.from, at.path);
  if (!found) return found.error();
  at.tree->status_of(**found, status);
  return 0;
}

// Reads or writes one piece after the other, until one is not moved completely.
template <class Move>
long move_pieces(const iovec* pieces, int count, Move move) {
  long moved = 0;
  for (const iovec& piece : std::span(pieces, static_cast<std::size_t>(count))) {
    const long result = move(piece, moved);
    if (result < 0) return moved > 0 ? moved : result;
    moved += result;
    if (static_cast<std::size_t>(result) < piece.iov_len) break;
  }
  return moved;
}

long read_pieces(DiskFile& file, const iovec* pieces, int count, off_t offset, bool may_wait) {
  return move_pieces(pieces, count, [&](const iovec& piece, long done) {
    return file.read_at({static_cast<std::byte*>(piece.iov_base), piece.iov_len},
                        static_cast<std::uint64_t>(offset + done), may_wait);
  });
}

}  // namespace

}  // namespace spate::sim

namespace sim = spate::sim;
using sim::DiskFile;
using sim::DiskListing;
using sim::DiskPath;
using sim::Kernel;
using sim::Simulation;

extern "C" {

// ---- open files

int spate_sim_openat(int directory, const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = static_cast<mode_t>(va_arg(list, int));
  va_end(list);
  const DiskPath at = sim::disk_path(directory, path);
  if (at.tree == nullptr) return ::openat(directory, path, flags, mode);
  return sim::returned_int(sim::open_on(at, flags, mode));
}

ssize_t spate_sim_pread(int fd, void* data, std::size_t size, off_t offset) {
  const auto file = sim::disk_file_at(fd);
  if (file == nullptr) return ::pread(fd, data, size, offset);
  return sim::returned(file->read_at({static_cast<std::byte*>(data), size},
                                     static_cast<std::uint64_t>(offset), true));
}

ssize_t spate_sim_preadv(int fd, const iovec* pieces, int count, off_t offset) {
  const auto file = sim::disk_file_at(fd);
  if (file == nullptr) return ::preadv(fd, pieces, count, offset);
  return sim::returned(sim::read_pieces(*file, pieces, count, offset, true));
}

// Whether a page of a real file is in memory depends on the machine.
ssize_t spate_sim_preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  if (const auto file = sim::disk_file_at(fd)) {
    const bool may_wait = (flags & RWF_NOWAIT) == 0;
    return sim::returned(sim::read_pieces(*file, pieces, count, offset, may_wait));
  }
  if (Kernel::current() != nullptr) return sim::returned(-EOPNOTSUPP);
  return ::preadv2(fd, pieces, count, offset, flags);
}

ssize_t spate_sim_pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  const auto file = sim::disk_file_at(fd);
  if (file == nullptr) return ::pwritev(fd, pieces, count, offset);
  std::string bytes;  // One write, of which inotify reports one change.
  for (const iovec& piece : std::span(pieces, static_cast<std::size_t>(count)))
    bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return sim::returned(
      file->write_at(std::as_bytes(std::span(bytes)), static_cast<std::uint64_t>(offset)));
}

int spate_sim_fsync(int fd) {
  const auto file = sim::disk_file_at(fd);
  return file == nullptr ? ::fsync(fd) : sim::returned_int(file->sync());
}

int spate_sim_ftruncate(int fd, off_t size) {
  const auto file = sim::disk_file_at(fd);
  if (file == nullptr) return ::ftruncate(fd, size);
  return sim::returned_int(size < 0 ? -EINVAL : file->resize(static_cast<std::uint64_t>(size)));
}

int spate_sim_posix_fadvise(int fd, off_t offset, off_t size, int advice) {
  return sim::disk_file_at(fd) == nullptr ? ::posix_fadvise(fd, offset, size, advice) : 0;
}

int spate_sim_fstat(int fd, struct stat* status) {
  if (!sim::is_simulated(fd)) return ::fstat(fd, status);
  if (const auto file = sim::disk_file_at(fd)) {
    file->tree()->status_of(*file->node(), *status);
    return 0;
  }
  const std::shared_ptr<File> file = sim::file_at(fd);
  if (file == nullptr) return sim::returned_int(-EBADF);
  *status = {};
  status->st_mode = file->file_type() | S_IRUSR | S_IWUSR;
  return 0;
}

// Real files take no time: the loop reads them at once, as those of tmpfs, on every machine.
int spate_sim_fstatfs(int fd, struct statfs* found) {
  if (Kernel::current() == nullptr) return ::fstatfs(fd, found);
  *found = {};
  if (sim::disk_file_at(fd) == nullptr) found->f_type = TMPFS_MAGIC;
  return 0;
}

// ---- paths

int spate_sim_fstatat(int directory, const char* path, struct stat* status, int flags) {
  const DiskPath at = sim::disk_path(directory, path);
  if (at.tree == nullptr) return ::fstatat(directory, path, status, flags);
  return sim::returned_int(sim::status_on(at, *status));
}

int spate_sim_stat(const char* path, struct stat* status) {
  const DiskPath at = sim::disk_path(AT_FDCWD, path);
  return at.tree == nullptr ? ::stat(path, status) : sim::returned_int(sim::status_on(at, *status));
}

int spate_sim_statfs(const char* path, struct statfs* found) {
  const DiskPath at = sim::disk_path(AT_FDCWD, path);
  if (at.tree == nullptr) return ::statfs(path, found);
  const auto node = at.tree->find(at.from, at.path);
  *found = {};
  return sim::returned_int(node ? 0 : node.error());
}

int spate_sim_unlinkat(int directory, const char* path, int flags) {
  const DiskPath at = sim::disk_path(directory, path);
  if (at.tree == nullptr) return ::unlinkat(directory, path, flags);
  return sim::returned_int(at.tree->remove(at.from, at.path, (flags & AT_REMOVEDIR) != 0));
}

int spate_sim_rename(const char* from, const char* to) {
  const DiskPath old_path = sim::disk_path(AT_FDCWD, from);
  const DiskPath new_path = sim::disk_path(AT_FDCWD, to);
  if (old_path.tree != new_path.tree) return sim::returned_int(-EXDEV);
  if (old_path.tree == nullptr) return ::rename(from, to);
  return sim::returned_int(
      old_path.tree->rename(old_path.from, old_path.path, new_path.from, new_path.path));
}

// ---- directories

DIR* spate_sim_fdopendir(int fd) {
  const auto file = sim::disk_file_at(fd);
  if (file == nullptr) return ::fdopendir(fd);
  if (file->node()->is_directory) return Simulation::current()->disks.open_listing(fd, *file);
  errno = ENOTDIR;
  return nullptr;
}

dirent* spate_sim_readdir(DIR* stream) {
  Simulation* simulation = Simulation::current();
  DiskListing* listing = simulation == nullptr ? nullptr : simulation->disks.listing_of(stream);
  if (listing == nullptr) return ::readdir(stream);
  return listing->next == listing->entries.size() ? nullptr : &listing->entries[listing->next++];
}

int spate_sim_dirfd(DIR* stream) {
  Simulation* simulation = Simulation::current();
  const DiskListing* listing =
      simulation == nullptr ? nullptr : simulation->disks.listing_of(stream);
  return listing == nullptr ? ::dirfd(stream) : listing->fd;
}

int spate_sim_closedir(DIR* stream) {
  Simulation* simulation = Simulation::current();
  const DiskListing* listing =
      simulation == nullptr ? nullptr : simulation->disks.listing_of(stream);
  if (listing == nullptr) return ::closedir(stream);
  const int fd = listing->fd;
  simulation->disks.close_listing(stream);
  return sim::returned_int(simulation->close(fd));
}

// ---- inotify

int spate_sim_inotify_init1(int flags) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::inotify_init1(flags);
  if (const long result = simulation->may_open(); result < 0) return sim::returned_int(result);
  const auto made = simulation->disks.make_inotify();
  return sim::returned_int(made ? simulation->open(*made) : made.error());
}

int spate_sim_inotify_add_watch(int fd, const char* path, std::uint32_t mask) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::inotify_add_watch(fd, path, mask);
  const std::shared_ptr<sim::File> file = simulation->find(fd);
  const auto inotify = sim::file_cast<sim::Inotify>(file);
  if (inotify == nullptr) return sim::returned_int(file == nullptr ? -EBADF : -EINVAL);
  const DiskPath at = simulation->disks.find(path);
  if (at.tree == nullptr) return sim::returned_int(-ENOSYS);
  const auto node = at.tree->find(at.from, at.path);
  if (!node) return sim::returned_int(node.error());
  if ((mask & IN_ONLYDIR) != 0 && !(*node)->is_directory) return sim::returned_int(-ENOTDIR);
  return sim::returned_int(inotify->add(*node, mask));
}

int spate_sim_inotify_rm_watch(int fd, int watch) {
  Simulation* simulation = Simulation::current();
  if (simulation == nullptr) return ::inotify_rm_watch(fd, watch);
  const std::shared_ptr<sim::File> file = simulation->find(fd);
  const auto inotify = sim::file_cast<sim::Inotify>(file);
  if (inotify == nullptr) return sim::returned_int(file == nullptr ? -EBADF : -EINVAL);
  return sim::returned_int(inotify->remove(watch));
}

}  // extern "C"
