// Http2Patience: limits unproductive frames from the peer of an HTTP/2 connection. Streams that it
// resets, or makes us reset, cost a request each. Other frames cost little, and useful ones
// compensate for some: sending a body causes window updates, for example.
#pragma once

#include <cstddef>
#include <cstdint>

#include "http/codec/budget.h"
#include "http/codec/http2_session.h"
#include "spate/time.h"

namespace spate::http {

class Http2Patience {
 public:
  // Handles Http2Events::on_frame(). False if the limit is exceeded.
  bool bears(Http2Frame kind, Nanos now) {
    if (kind == Http2Frame::useful) return idle_frames_.give_back(kForUseful), true;
    return kind == Http2Frame::reset ? resets_.spend(now) : idle_frames_.spend(now);
  }
  // As above, for a stream that was reset because the peer violated the protocol.
  bool bears_violation(Nanos now) { return resets_.spend(now); }
  void on_sent(std::size_t size) {
    idle_frames_.give_back(static_cast<std::int64_t>(size / kBytesForIdle));
  }

 private:
  static constexpr std::int64_t kForUseful = 4;
  static constexpr std::size_t kBytesForIdle = 256;

  // The burst, and the rate per second.
  Budget resets_{500, 33};
  Budget idle_frames_{1000, 100};
};

}  // namespace spate::http
