// Bytes in flight between two descriptors of one host: the contents of a pipe, or of one direction
// of a unix socket. They use the host's memory. Descriptors are attached to the first byte of their
// message.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sim/kernel/passed.h"
#include "sim/kernel/socket_memory.h"

namespace spate::sim {

class Channel {
 public:
  Channel(SocketMemory& memory, int host) : memory_(memory), host_(host) {}
  ~Channel() { clear(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  std::size_t size() const { return size_; }
  // Returns how much it may hold in all, limited by the host's memory alone.
  std::size_t memory() const { return memory_.room(host_); }
  void append(std::string_view bytes, Passed passed = {});
  // Removes up to `most` bytes. Stops after a piece that had descriptors, which are moved to
  // `passed`.
  std::string take(std::size_t most, Passed& passed);
  std::string peek(std::size_t most) const;
  // Moves all descriptors to `dropped`.
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
