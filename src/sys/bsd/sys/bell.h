// Bell: a descriptor that any thread and any signal handler can make readable.
#pragma once

#include "sys/descriptor.h"
#include "sys/socket_calls.h"

namespace spate::sys {

class Bell {
 public:
  // Opens it, or replaces it by another one. Returns 0 or a negated errno.
  long open() {
    int ends[2] = {-1, -1};
    if (const long result = create(ends); result < 0) return result;
    reader_ = Descriptor(ends[0]);
    writer_ = Descriptor(ends[1]);
    if (const long result = set_nonblocking(ends[0]); result < 0) return result;
    return set_nonblocking(ends[1]);
  }
  // Readable from ring() until silence().
  int fd() const { return reader_.get(); }

  // If the pipe is full, the descriptor is readable already.
  void ring() const {
    const char byte = 0;
    while (write(writer_.get(), &byte, 1) == -EINTR) {
    }
  }
  void silence() const {
    char bytes[512];
    while (read(reader_.get(), bytes, sizeof(bytes)) == sizeof(bytes)) {
    }
  }

 private:
  static long create(int (&ends)[2]) {
    if (const int error = injected(SystemCall::eventfd)) return -error;
    return opened_pair(new_pipe(ends), ends);
  }

  Descriptor reader_;
  Descriptor writer_;
};

}  // namespace spate::sys
