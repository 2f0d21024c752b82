// Watches paths: inotify and lstat().
#pragma once

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "sys/descriptor.h"

namespace spate::sys {

inline long inotify_create() {
  if (const int error = injected(SystemCall::inotify_init)) return -error;
  return opened(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

// Whether a symbolic link is followed.
enum class Follow : bool { no, yes };

inline long inotify_add(int inotify, const char* path, Follow follow) {
  if (const int error = injected(SystemCall::inotify_add_watch)) return -error;
  constexpr std::uint32_t kChanges = IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                     IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD;
  const std::uint32_t link = follow == Follow::no ? IN_DONT_FOLLOW : 0;
  return result_of(::inotify_add_watch(inotify, path, kChanges | link));
}

// Watches a directory for `mask` and for its unmounting. Replaces an earlier mask.
inline long inotify_watch(int inotify, const char* path, std::uint32_t mask, Follow follow) {
  if (const int error = injected(SystemCall::inotify_add_watch)) return -error;
  const std::uint32_t link = follow == Follow::no ? IN_DONT_FOLLOW : 0;
  return result_of(::inotify_add_watch(inotify, path, mask | link | IN_ONLYDIR));
}

inline void inotify_remove(int inotify, int watch) { ::inotify_rm_watch(inotify, watch); }

struct InotifyRecord {
  int watch = -1;  // -1: the queue has overflowed.
  std::uint32_t mask = 0;
  std::uint32_t cookie = 0;  // Equal for the two halves of a move.
  std::string_view name{};   // Empty: the watched directory itself.
  std::size_t end = 0;       // Its end among the bytes.
};

// Reads the record at `offset` of bytes that were read from inotify. False at the end, and if the
// record is incomplete.
inline bool read_record(std::span<const char> bytes, std::size_t offset, InotifyRecord& record) {
  inotify_event head{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof(head)) return false;
  std::memcpy(&head, bytes.data() + offset, sizeof(head));
  offset += sizeof(head);
  if (bytes.size() - offset < head.len) return false;
  const char* name = bytes.data() + offset;  // Padded with zero bytes.
  record = {.watch = head.wd,
            .mask = head.mask,
            .cookie = head.cookie,
            .name = {name, head.len == 0 ? 0 : ::strnlen(name, head.len)},
            .end = offset + head.len};
  return true;
}

// Makes a path absolute. Returns 0 or a negated errno.
inline long make_absolute(std::string& path) {
  if (path.starts_with('/')) return 0;
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof(directory)) == nullptr) return -errno;
  path.insert(0, std::string(directory) + '/');
  return 0;
}

inline long look_at(const char* path, Follow follow, struct stat& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  return result_of(
      ::fstatat(AT_FDCWD, path, &status, follow == Follow::no ? AT_SYMLINK_NOFOLLOW : 0));
}

inline bool is_link(const char* path) {
  struct stat status{};
  return look_at(path, Follow::no, status) >= 0 && S_ISLNK(status.st_mode);
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
