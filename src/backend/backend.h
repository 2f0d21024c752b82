// Backend: reports which descriptors are ready, and has no other task. Timers, signals, priorities
// and callbacks are implemented once, in core. README.md in this directory is the complete
// contract.
#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string_view>
#include <system_error>

#include "base/array.h"
#include "spate/error.h"
#include "spate/events.h"
#include "spate/metrics.h"
#include "spate/time.h"

namespace spate {

struct Ready {
  int fd;
  std::uint32_t generation;  // Identifies the registration to which the event belongs.
  Events events;             // With Events::error if the descriptor is in error or hung up.
  int error;                 // Nonzero: the kernel has no such descriptor any more; an errno, and
                             // `events` is none.
};

using ReadyList = Array<Ready>;
// The loop reserves room for this many when it is made.
inline constexpr std::size_t kLeastReady = 64;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // Changes the events reported for `fd` from `before` to `after`. Called just before wait(), at
  // most once per descriptor. If `before` equals `after`, the number may refer to another file now;
  // EEXIST then means that it does not, and that nothing was changed. ENOMEM, like any error,
  // changes nothing either. Events of this registration carry `generation` from here on. Removing
  // never fails. Returns 0, or a negated errno; kOutOfRange for a number that is too high.
  virtual long modify(int fd, Events before, Events after, std::uint32_t generation) = 0;
  static constexpr long kOutOfRange = -ERANGE;

  // Called before `fd` is closed: removes it as modify() does, unless closing removes it anyway.
  virtual void closing(int fd, Events before) { modify(fd, before, Events::none, 0); }

  // Waits until a descriptor is ready, at most `timeout` (zero: does not wait; kForever: no limit),
  // and appends the ready ones. It may return early and empty. When memory runs out, it appends as
  // many as fit; the next wait finds the rest. An interruption is not an error, but descriptors
  // that are ready by then must be checked again, so that timers do not overtake them. Returns 0,
  // or a negated errno.
  virtual long wait(Nanos timeout, ReadyList& ready) = 0;

  // Opens it, or reopens it in the child of a fork; no descriptors are registered afterwards.
  virtual std::error_code reopen() = 0;

  // As reopen(), when the kernel's set is beyond repair; poll_fd() stays the same.
  virtual std::error_code start_over() { return reopen(); }

  // Returns whether kEdge is supported: readiness is then reported once each time it arises.
  virtual bool knows_edges() const { return false; }

  // Returns a descriptor that is readable when wait() would return something. Errors: the kernel's,
  // or Error::not_pollable.
  virtual Result<int> poll_fd() { return std::unexpected(make_error_code(Error::not_pollable)); }

  const KernelCalls& kernel_calls() const { return calls_; }

 protected:
  // Makes room in `ready` for `wanted` more, or for as many as memory allows. Returns how many.
  static std::size_t room_for(std::size_t wanted, ReadyList& ready) {
    return ready.reserve(ready.size() + wanted) ? wanted : ready.capacity() - ready.size();
  }
  KernelCalls calls_;
};

// The events of a descriptor that is in error or hung up: the caller's read or write returns the
// error.
inline constexpr Events kHungUp =
    Events::read | Events::write | Events::peer_closed | Events::error;

}  // namespace spate
