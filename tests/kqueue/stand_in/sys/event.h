// A stand-in for kqueue on Linux, for tests: the part of the interface that spate's backend uses.
// It behaves as the manual pages and the kernels of FreeBSD and OpenBSD do. See kqueue.cc.
#pragma once
#pragma GCC system_header  // A struct and a function have one name.

#include <cstdint>
#include <ctime>

constexpr std::int16_t EVFILT_READ = -1;
constexpr std::int16_t EVFILT_WRITE = -2;
// A macro, as it is everywhere: FreeBSD and NetBSD do not have it.
#define EVFILT_EXCEPT (-9)

constexpr std::uint16_t EV_ADD = 0x0001;
constexpr std::uint16_t EV_DELETE = 0x0002;
constexpr std::uint16_t EV_ENABLE = 0x0004;
constexpr std::uint16_t EV_DISABLE = 0x0008;
constexpr std::uint16_t EV_RECEIPT = 0x0040;
constexpr std::uint16_t EV_ERROR = 0x4000;
constexpr std::uint16_t EV_EOF = 0x8000;

constexpr std::uint32_t NOTE_LOWAT = 0x0001;
constexpr std::uint32_t NOTE_OOB = 0x0004;

struct kevent {
  std::uintptr_t ident;
  std::int16_t filter;
  std::uint16_t flags;
  std::uint32_t fflags;
  std::int64_t data;
  void* udata;
};

extern "C" {
int kqueue();
int kevent(int queue, const struct kevent* changes, int change_count, struct kevent* events,
           int event_count, const timespec* timeout);
}
