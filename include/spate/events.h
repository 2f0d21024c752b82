// Events: the conditions that a watcher requests and reports, as a set of bits.
//
// The values below `custom` are libev's (ev.h 4.33), so that a libev layer converts by a cast.
// `urgent` and `peer_closed` are additions.
// Threads: any; the values are constants or plain copies.
#pragma once

#include <cstdint>

#include "spate/export.h"

namespace spate {

enum class Events : std::uint32_t {
  none = 0,
  read = 0x1,    // Reading will not block; also set on error and hang-up: read() returns which.
  write = 0x2,   // Writing will not block; also set on error and hang-up.
  urgent = 0x4,  // Out-of-band data (POLLPRI).
  peer_closed =
      0x8,        // The peer shut down its sending side (POLLRDHUP), seen without reading up to it.
  timer = 0x100,  // A Timer expired; for once(): the timeout came first.
  periodic = 0x200,    //
  signal = 0x400,      //
  child = 0x800,       //
  stat = 0x1000,       //
  idle = 0x2000,       //
  prepare = 0x4000,    //
  check = 0x8000,      //
  fork = 0x20000,      //
  cleanup = 0x40000,   //
  async = 0x80000,     //
  custom = 0x1000000,  // Never set by the loop; for feed().
  error =
      0x80000000u,  // The watcher was stopped because the kernel refused it; Io::error() says why.
};

constexpr Events operator|(Events a, Events b) {
  return static_cast<Events>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Events operator&(Events a, Events b) {
  return static_cast<Events>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr Events operator~(Events a) { return static_cast<Events>(~static_cast<std::uint32_t>(a)); }
constexpr Events& operator|=(Events& a, Events b) { return a = a | b; }
constexpr Events& operator&=(Events& a, Events b) { return a = a & b; }

// True if any bit is set: `if (any(events & Events::read))`.
constexpr bool any(Events events) { return events != Events::none; }

// For nodes only: edge-triggered (EPOLLET). Backends other than epoll ignore it. All nodes of a
// descriptor must agree.
inline constexpr Events kEdge = static_cast<Events>(0x10);

// The events that an Io may request.
inline constexpr Events kIoEvents =
    Events::read | Events::write | Events::urgent | Events::peer_closed;

}  // namespace spate
