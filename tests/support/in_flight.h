// An operation that stays under way as long as the loop is there, so that a loop on io_uring waits
// in its ring, and not in epoll's set alone.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>

#include "core/loop_core.h"
#include "sys/operations.h"

namespace spate::testing {

class InFlight {
 public:
  // Nothing on the other backends.
  static void begin(Loop& loop) {
    sys::Operations* const operations = core_of(loop).operations();
    if (operations != nullptr) (new InFlight(*operations))->begin_again();
  }

 private:
  explicit InFlight(sys::Operations& operations) : operations_(operations) {
    operation_.context = this;
    operation_.callback = [](void* context, sys::Operation&, int result, std::uint32_t) {
      if (result >= 0) std::abort();  // Nobody writes.
      static_cast<InFlight*>(context)->begin_again();
    };
  }
  ~InFlight() { ::close(silent_); }

  // The end of the ring is the end of this.
  void begin_again() {
    io_uring_sqe* const entry = operations_.begin(operation_);
    if (entry == nullptr) return delete this;
    sys::prepare_poll(*entry, silent_, POLLIN);
  }

  sys::Operations& operations_;
  sys::Operation operation_;
  int silent_ = ::eventfd(0, EFD_CLOEXEC);
};

}  // namespace spate::testing
