// Bytes on their way between two descriptors of one host, in order: what is in a pipe, or in one
// direction of a Unix socket. Descriptors go with the first byte of what they were sent with.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "sim/kernel/passed.h"

namespace spate::sim {

class Channel {
 public:
  std::size_t size() const { return size_; }
  void append(std::string_view bytes, Passed passed = {});
  // Up to `most` bytes. Ends behind a piece that had descriptors, which go to `passed`.
  std::string take(std::size_t most, Passed& passed);
  std::string peek(std::size_t most) const;
  // All descriptors, to `dropped`.
  void give_up(Passed& dropped);
  void clear() { *this = {}; }

 private:
  struct Piece {
    std::string bytes;
    Passed passed;
    std::size_t begin = 0;
  };

  std::deque<Piece> pieces_;
  std::size_t size_ = 0;
};

}  // namespace spate::sim
