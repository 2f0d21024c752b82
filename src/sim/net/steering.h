// Steering: a program that chooses the socket of a group for each packet: classic BPF, as
// SO_ATTACH_REUSEPORT_CBPF takes it (socket(7)).
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "spate/net/bytes.h"

namespace spate::sim {

class Steering {
 public:
  // Copies and checks the program. nullptr if Linux refuses it, or it uses the index register, the
  // scratch memory or ancillary data, which this model does not have.
  static std::shared_ptr<const Steering> make(const sock_fprog& program);

  // Returns the result of the program. A load behind the end of the packet ends it with zero.
  std::uint32_t socket_for(Bytes packet) const;

 private:
  explicit Steering(std::vector<sock_filter> steps) : steps_(std::move(steps)) {}
  bool is_valid() const;
  bool is_valid(std::size_t at) const;

  std::vector<sock_filter> steps_;
};

}  // namespace spate::sim
