// Depends on the file system: opening beneath a directory, and where files are.
#pragma once

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "sys/descriptor.h"
#include "sys/path.h"

namespace spate::sys {

// Opens a directory on the way to a file; it cannot be read.
inline constexpr int kToPass = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Opens for reading. Neither `path` nor a link in it can leave `root` (-EXDEV). Needs Linux 5.6,
// otherwise -ENOSYS; -EAGAIN while directories are being moved.
// With Waiting::never, -EAGAIN also if a name is not in the kernel's cache, and -EXDEV at a mount
// point. Needs Linux 5.12, otherwise -EINVAL.
inline long open_beneath(int root, const char* path, Waiting waiting) {
  if (const int error = injected(SystemCall::open)) return -error;
  open_how how{};
  how.flags = kToRead;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (waiting == Waiting::never) how.resolve |= RESOLVE_CACHED | RESOLVE_NO_XDEV;
  return opened(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
}

// Returns the medium of the file system of an open file or directory.
inline Medium medium_of(int fd) {
  struct statfs found{};
  if (::fstatfs(fd, &found) != 0) return Medium::other;
  switch (static_cast<std::uint32_t>(found.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return Medium::memory;
    case EXT4_SUPER_MAGIC:  // Also ext2 and ext3.
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
      return Medium::disk;
    default:
      return Medium::other;
  }
}

// Returns 1 if the path is on a network file system, where inotify misses changes by other
// machines; 0 if not; a negated errno if the path does not exist.
inline long is_remote(const char* path) {
  // From statfs(2): NFS, SMB, CIFS, SMB2, 9P, FUSE, Ceph, AFS.
  constexpr std::uint32_t kRemote[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                       0x01021997, 0x65735546, 0x00c36400, 0x5346414f};
  struct statfs fs{};
  if (::statfs(path, &fs) < 0) return -errno;
  for (const std::uint32_t magic : kRemote) {
    if (static_cast<std::uint32_t>(fs.f_type) == magic) return 1;
  }
  return 0;
}

}  // namespace spate::sys
