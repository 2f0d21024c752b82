// relay() and copy(): forward bytes from one Stream to another, in both directions or in one.
//
// Ownership: the relay owns the Streams. The returned Relaying is its handle; destroying it closes
// both, as destroying a Stream does, without a callback. If the loop is destroyed first, there is
// no callback either.
// Threads: the loop's thread only; both Streams are of one loop.
// The callback is called once, from the loop and never from inside relay(), when both Streams are
// closed. Inside it everything is allowed, destroying the Relaying included.
//
// Back-pressure: while one Stream is_full(), the other is not read, so a slow reader slows its
// sender down. Queue limits, rates and deadlines that were set on the Streams stay in effect.
// Bytes are sent from the buffer in which they arrived; only bytes that the kernel does not take at
// once are copied.
// Endings: relay() forwards the end of each side while the other side continues. copy() closes both
// when `from` has ended and everything is sent. When one fails or is reset, the other is reset.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

struct RelayOptions {
  // Resets both, with Error::idle_timeout, when neither moved a byte for this long; never early,
  // and at most a quarter late. Zero or less: none.
  // A byte moves when it is received for the other side, and again when it is sent. An EOF does not
  // count, and neither does the discarded input of copy()'s `to`. If one side stops reading, both
  // become idle when the queues are full.
  Nanos idle_timeout{0};
};

struct RelayResult {
  // No error if both sides ended normally; otherwise the error of the Stream that failed first, or
  // Error::idle_timeout.
  std::error_code error;
  // Bytes forwarded from the first Stream to the second, and from the second to the first. After an
  // error, some of them may not have been sent.
  std::uint64_t forth = 0;
  std::uint64_t back = 0;
};

using OnRelayed = Function<void(const RelayResult& result)>;

class Relay;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT RelayEnd {
  void operator()(Relay* relay) const;
};

class [[nodiscard]] Relaying {
 public:
  Relaying() = default;
  explicit Relaying(Relay* relay) : relay_(relay) {}

  // Closes both. No callback follows.
  void cancel() { relay_.reset(); }
  // Resets both, so that a truncated stream does not look complete. No callback follows.
  SPATE_EXPORT void abort();

 private:
  std::unique_ptr<Relay, RelayEnd> relay_;
};

// Connects two Streams on which end(), close() and release() were not called. Both start reading,
// also if they were paused.
SPATE_EXPORT Relaying relay(Stream first, Stream second, OnRelayed callback,
                            const RelayOptions& options = {});
// Forwards in one direction only. Input from `to` is discarded, and its end of file ignored.
SPATE_EXPORT Relaying copy(Stream from, Stream to, OnRelayed callback,
                           const RelayOptions& options = {});

}  // namespace spate
