// FlowWindow: the bytes of bodies that the peer may still send (RFC 9113 §5.2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace spate::http {

class FlowWindow {
 public:
  // False if the peer exceeds `limit`.
  bool take(std::size_t size, std::int32_t limit) {
    taken_ += static_cast<std::int64_t>(size);
    return taken_ <= limit;
  }
  void use(std::size_t size) { used_ = std::min(used_ + static_cast<std::int64_t>(size), taken_); }
  // Returns the increment to announce: 0 until half of the window is used.
  std::uint32_t give_back(std::int32_t limit) {
    if (used_ == 0 || used_ * 2 < limit) return 0;
    taken_ -= used_;
    return static_cast<std::uint32_t>(std::exchange(used_, 0));
  }

 private:
  std::int64_t taken_ = 0;  // Bytes that arrived and were not given back,
  std::int64_t used_ = 0;   // and those of them that are used.
};

}  // namespace spate::http
