// Http2Patience: what is put up with from the peer of a connection of HTTP/2 that brings nothing.
// Streams that it resets, or makes us reset, cost a request each; other frames little, and each
// that is of use makes up for some: a body that is sent comes with updates of its windows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "http/codec/budget.h"
#include "http/codec/http2_session.h"
#include "spate/time.h"

namespace spate::http {

class Http2Patience {
 public:
  // Http2Events::on_frame(). False: that is enough.
  bool bears(Http2Frame kind, Nanos now) {
    if (kind == Http2Frame::useful) return idle_frames_.give_back(kForUseful), true;
    return kind == Http2Frame::reset ? resets_.spend(now) : idle_frames_.spend(now);
  }
  // The same of a stream that was reset as the peer has broken a rule.
  bool bears_violation(Nanos now) { return resets_.spend(now); }
  void on_sent(std::size_t size) {
    idle_frames_.give_back(static_cast<std::int64_t>(size / kBytesForIdle));
  }

 private:
  static constexpr std::int64_t kForUseful = 4;
  static constexpr std::size_t kBytesForIdle = 256;

  // At once, and in a second.
  Budget resets_{500, 33};
  Budget idle_frames_{1000, 100};
};

}  // namespace spate::http
