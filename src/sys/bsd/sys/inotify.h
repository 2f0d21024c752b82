// Watches paths: inotify, which the kernel does not have.
//
// Everything returns -ENOSYS: the loop polls the paths that it watches. The bits are those of
// Linux, for the code that reads records.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sys/path.h"

inline constexpr std::uint32_t IN_MODIFY = 0x2;
inline constexpr std::uint32_t IN_ATTRIB = 0x4;
inline constexpr std::uint32_t IN_CLOSE_WRITE = 0x8;
inline constexpr std::uint32_t IN_MOVED_FROM = 0x40;
inline constexpr std::uint32_t IN_MOVED_TO = 0x80;
inline constexpr std::uint32_t IN_CREATE = 0x100;
inline constexpr std::uint32_t IN_DELETE = 0x200;
inline constexpr std::uint32_t IN_DELETE_SELF = 0x400;
inline constexpr std::uint32_t IN_MOVE_SELF = 0x800;
inline constexpr std::uint32_t IN_UNMOUNT = 0x2000;
inline constexpr std::uint32_t IN_Q_OVERFLOW = 0x4000;
inline constexpr std::uint32_t IN_IGNORED = 0x8000;
inline constexpr std::uint32_t IN_EXCL_UNLINK = 0x400'0000;
inline constexpr std::uint32_t IN_ISDIR = 0x4000'0000;

namespace spate::sys {

inline long inotify_create() { return -ENOSYS; }
inline long inotify_add(int, const char*, Follow) { return -ENOSYS; }
inline long inotify_watch(int, const char*, std::uint32_t, Follow) { return -ENOSYS; }
inline void inotify_remove(int, int) {}

struct InotifyRecord {
  int watch = -1;
  std::uint32_t mask = 0;
  std::uint32_t cookie = 0;
  std::string_view name{};
  std::size_t end = 0;
};

inline bool read_record(std::span<const char>, std::size_t, InotifyRecord&) { return false; }

template <class Take>
void for_each_change(int, Take) {}

}  // namespace spate::sys
