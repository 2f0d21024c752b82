// Bytes on their way between two descriptors of one host, in order: what is in a pipe, or in one
// direction of a Unix socket. They are in the host's memory. Descriptors go with the first byte of
// what they were sent with.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sim/kernel/passed.h"
#include "sim/net/socket_memory.h"

namespace spate::sim {

class Channel {
 public:
  Channel(SocketMemory& memory, int host) : memory_(memory), host_(host) {}
  ~Channel() { clear(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  std::size_t size() const { return size_; }
  // How much more it may have in all, by the host's memory alone.
  std::size_t memory() const { return memory_.room(host_); }
  void append(std::string_view bytes, Passed passed = {});
  // Up to `most` bytes. Ends behind a piece that had descriptors, which go to `passed`.
  std::string take(std::size_t most, Passed& passed);
  std::string peek(std::size_t most) const;
  // All descriptors, to `dropped`.
  void give_up(Passed& dropped);
  void clear();

 private:
  struct Piece {
    std::string bytes;
    Passed passed;
    std::size_t begin = 0;
  };

  SocketMemory& memory_;
  const int host_;
  std::deque<Piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace spate::sim
