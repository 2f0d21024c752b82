// Shared by the servers of fanout: a connection that sends bytes publishes messages of --size
// bytes, and each goes to all other connections.
#ifndef BENCH_WORKLOADS_FANOUT_SERVER_H
#define BENCH_WORKLOADS_FANOUT_SERVER_H

#include <algorithm>

#include "harness/server.h"

// For contestants whose library does not split messages: splits those of one connection. Keeps an
// incomplete message until the rest arrives.
class Inbox {
 public:
  explicit Inbox(std::size_t size) : size_(size) {}

  // Calls publish(bytes, size) once, with all messages that are whole, if there are any.
  template <class Publish>
  void take_together(const char* bytes, std::size_t count, Publish publish) {
    if (!rest_.empty()) {
      rest_.append(bytes, count);
      bytes = rest_.data();
      count = rest_.size();
    }
    const std::size_t whole = count - count % size_;
    if (whole > 0) publish(bytes, whole);
    rest_.assign(bytes + whole, count - whole);
  }

  // Calls publish(bytes, size) for each message.
  template <class Publish>
  void take(const char* bytes, std::size_t count, Publish publish) {
    take_together(bytes, count, [&](const char* all, std::size_t size) {
      for (std::size_t i = 0; i < size; i += size_) publish(all + i, size_);
    });
  }

 private:
  const std::size_t size_;
  std::string rest_;
};

#endif
