// Bell: a descriptor that any thread and any signal handler can make readable.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

inline long create_eventfd() {
  if (const int error = injected(SystemCall::eventfd)) return -error;
  return opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

class Bell {
 public:
  // Opens it, or replaces it by another one. Returns 0 or a negated errno.
  long open() {
    const long fd = create_eventfd();
    if (fd < 0) return fd;
    eventfd_ = Descriptor(fd);
    return 0;
  }
  // Readable from ring() until silence().
  int fd() const { return eventfd_.get(); }

  void ring() const {
    const std::uint64_t one = 1;
    while (write(eventfd_.get(), &one, sizeof(one)) == -EINTR) {
    }
  }
  void silence() const {
    std::uint64_t count;
    // If it is empty already, nothing needs to be done.
    read(eventfd_.get(), &count, sizeof(count));
  }

 private:
  Descriptor eventfd_;
};

}  // namespace spate::sys
