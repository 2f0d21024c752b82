// Backend: tells which descriptors are ready, and knows nothing else. Timers, signals, priorities
// and callbacks are written once, in core. README.md beside this file is the contract in full.
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
  std::uint32_t generation;  // Of the registration that the event belongs to.
  Events events;             // With Events::error if the descriptor is in error or hung up.
  int error;                 // Not 0: the kernel no longer knows this descriptor; an errno, and
                             // `events` is none.
};

using ReadyList = Array<Ready>;
// The loop makes room for so many when it is made.
inline constexpr std::size_t kLeastReady = 64;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // Changes what is reported of `fd` from `before` to `after`. Called just before wait(), at most
  // once a descriptor; `before` equal to `after` means that the number may stand for another file
  // now; EEXIST then says that it does not, and that nothing has been changed. ENOMEM, as any
  // error, changes nothing either. Events of this registration carry `generation` from here on.
  // Removing never fails. 0, or a negated errno; kOutOfRange for a number that is too high.
  virtual long modify(int fd, Events before, Events after, std::uint32_t generation) = 0;
  static constexpr long kOutOfRange = -ERANGE;

  // `fd` is about to be closed: what modify() to nothing does, unless closing does it anyway.
  virtual void closing(int fd, Events before) { modify(fd, before, Events::none, 0); }

  // Waits until something is ready, `timeout` at most (zero: not at all; kForever: without end),
  // and appends what is. Early and empty is allowed. When memory runs out, as much as there is
  // room for: the rest is found by the next wait. Being interrupted is no error,
  // but what is ready by then has to be looked for once more: timers must not overtake it.
  // 0, or a negated errno.
  virtual long wait(Nanos timeout, ReadyList& ready) = 0;

  // Opens, or opens everything anew in the child of a fork; there are no descriptors afterwards.
  virtual std::error_code reopen() = 0;

  // The same when the kernel's set is beyond repair, but poll_fd() stays what it is.
  virtual std::error_code start_over() { return reopen(); }

  // Whether kEdge is heeded: readiness is then reported once each time it comes about.
  virtual bool knows_edges() const { return false; }

  // A descriptor that is readable when wait() would return something. Errors: the kernel's, or
  // Error::not_pollable.
  virtual Result<int> poll_fd() { return std::unexpected(make_error_code(Error::not_pollable)); }

  const KernelCalls& kernel_calls() const { return calls_; }

 protected:
  // Room in `ready` for `wanted` more, or for as many as memory allows.
  static std::size_t room_for(std::size_t wanted, ReadyList& ready) {
    return ready.reserve(ready.size() + wanted) ? wanted : ready.capacity() - ready.size();
  }
  KernelCalls calls_;
};

// What a backend reports when the descriptor is in error or hung up: the caller's read or write
// will tell.
inline constexpr Events kHungUp =
    Events::read | Events::write | Events::peer_closed | Events::error;

}  // namespace spate
