// Watching paths: inotify and lstat.
#pragma once

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "sys/descriptor.h"

namespace spate::sys {

inline long inotify_create() {
  if (const int error = injected(Call::inotify_init)) return -error;
  return result_of(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

inline long inotify_add(int inotify, const char* path) {
  if (const int error = injected(Call::inotify_add_watch)) return -error;
  constexpr std::uint32_t kChanges = IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                     IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW |
                                     IN_MASK_ADD;
  return result_of(::inotify_add_watch(inotify, path, kChanges));
}

inline void inotify_remove(int inotify, int watch) { ::inotify_rm_watch(inotify, watch); }

inline long lstat(const char* path, struct stat& status) {
  if (const int error = injected(Call::lstat)) return -error;
  return result_of(::lstat(path, &status));
}

// Whether changes to this path can come from other machines, which inotify does not see.
inline bool is_remote(const char* path) {
  constexpr long kRemote[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                              0x01021997, 0x65735546, 0x00c36400, 0x5346414f};
  struct statfs fs{};
  if (::statfs(path, &fs) < 0) return false;
  for (const long magic : kRemote) {
    if (static_cast<long>(fs.f_type) == magic) return true;
  }
  return false;
}

}  // namespace spate::sys
