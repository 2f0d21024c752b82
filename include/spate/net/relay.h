// relay() and copy(): what comes from one Stream goes to another, both ways or one way.
//
// Ownership: the Streams are the relay's from now on. The Relaying that is returned stands for it;
// destroying it closes both, as destroying a Stream does, and nobody is called. The loop may be
// destroyed first: then nobody is called either.
// Threads: the loop's thread only; both Streams are of one loop.
// The callback is called once, from the loop and never from inside relay(), when both Streams are
// closed. Everything is allowed inside, destroying the Relaying included.
//
// Back-pressure: of a Stream nothing is read while what it sent is_full() at the other one, so that
// a side that reads slowly slows the other one down. How much may wait is each Stream's own
// (Stream::set_limits(), before); so are rates and deadlines, which hold on.
// Bytes are sent from where they arrived; what the kernel does not take at once is copied.
// Endings: relay() passes on the end of each side while the other still flows. copy() closes both
// when `from` has ended and all of it has been sent. If one fails, or is reset by its peer, the
// other one is reset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

struct RelayOptions {
  // Both are reset, with Error::idle_timeout, when no byte has moved on either of them for so long;
  // not before, and no more than a quarter later. Zero is none.
  Nanos idle_timeout{0};
};

struct RelayResult {
  // None if all has gone as its peers wanted; else what on_closed() of the Stream that failed first
  // was told, or Error::idle_timeout.
  std::error_code error;
  // Bytes taken from the first Stream for the second, and from the second for the first, and given
  // to the system for them. With an error, some may have got no further than the relay.
  std::uint64_t forth = 0;
  std::uint64_t back = 0;
};

using OnRelayed = std::move_only_function<void(const RelayResult& result)>;

class Relay;

// Ends a relay. In the library, so that programs may be compiled with RTTI and it without.
struct SPATE_EXPORT RelayEnd {
  void operator()(Relay* relay) const;
};

class [[nodiscard]] Relaying {
 public:
  Relaying() = default;
  explicit Relaying(Relay* relay) : relay_(relay) {}

  // Both are closed, and nobody is called any more.
  void cancel() { relay_.reset(); }

 private:
  std::unique_ptr<Relay, RelayEnd> relay_;
};

// Connects two Streams that nobody has ended, closed or released. They read from now on, also if
// they were paused.
SPATE_EXPORT Relaying relay(Stream first, Stream second, OnRelayed callback,
                            const RelayOptions& options = {});
// One way only. What the peer of `to` sends is thrown away, and its end does not matter.
SPATE_EXPORT Relaying copy(Stream from, Stream to, OnRelayed callback,
                           const RelayOptions& options = {});

}  // namespace spate
