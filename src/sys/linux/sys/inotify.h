// Watches paths: inotify.
#pragma once

#include <sys/inotify.h>

#include <cstring>
#include <span>
#include <string_view>

#include "sys/descriptor.h"
#include "sys/path.h"

namespace spate::sys {

inline long inotify_create() {
  if (const int error = injected(SystemCall::inotify_init)) return -error;
  return opened(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

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

// Reads the changes, and calls `take` with the watch of each, and with whether the kernel has
// removed the watch. Watch -1: the queue has overflowed.
template <class Take>
void for_each_change(int inotify, Take take) {
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    const long size = read(inotify, buffer, sizeof(buffer));
    if (size <= 0) return;
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      take(event->wd, (event->mask & IN_IGNORED) != 0);
      at += sizeof(inotify_event) + event->len;
    }
    if (size < static_cast<long>(sizeof(buffer) / 2)) return;
  }
}

}  // namespace spate::sys
