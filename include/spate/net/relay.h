// relay() and copy(): forward from one Stream to another, in both directions or in one.
//
// Ownership: the relay owns the Streams. The Relaying that is returned is its handle; destroying it
// closes both, as destroying a Stream does, without a callback. If the loop is destroyed first,
// there is no callback either.
// Threads: the loop's thread only; both Streams are of one loop.
// The callback is called once, from the loop and never from inside relay(), when both Streams are
// closed. Inside it everything is allowed, destroying the Relaying included.
//
// Back-pressure: while one Stream is_full(), the other is not read, so a slow reader slows its
// sender down. Queue limits, rates and deadlines that were set on the Streams stay in effect.
// Bytes are sent from where they arrived; only what the kernel does not take at once is copied.
// Endings: relay() forwards the end of each side while the other side continues. copy() closes both
// when `from` has ended and everything is sent. When one fails or is reset, the other is reset.
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
  // Resets both, with Error::idle_timeout, when no byte has moved on either for this long; never
  // early, and at most a quarter late. Zero is none.
  Nanos idle_timeout{0};
};

struct RelayResult {
  // None if both sides ended normally; else the error of the Stream that failed first, or
  // Error::idle_timeout.
  std::error_code error;
  // Bytes forwarded from the first Stream to the second, and from the second to the first. With an
  // error, some of them may not have been sent.
  std::uint64_t forth = 0;
  std::uint64_t back = 0;
};

using OnRelayed = std::move_only_function<void(const RelayResult& result)>;

class Relay;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT RelayEnd {
  void operator()(Relay* relay) const;
};

class [[nodiscard]] Relaying {
 public:
  Relaying() = default;
  explicit Relaying(Relay* relay) : relay_(relay) {}

  // Closes both; no callback follows.
  void cancel() { relay_.reset(); }
  // Resets both, so that what was cut short does not look whole; no callback follows.
  SPATE_EXPORT void abort();

 private:
  std::unique_ptr<Relay, RelayEnd> relay_;
};

// Connects two Streams that have not been ended, closed or released. Both start reading, also if
// they were paused.
SPATE_EXPORT Relaying relay(Stream first, Stream second, OnRelayed callback,
                            const RelayOptions& options = {});
// One direction only. Input from `to` is discarded, and its end of file ignored.
SPATE_EXPORT Relaying copy(Stream from, Stream to, OnRelayed callback,
                           const RelayOptions& options = {});

}  // namespace spate
