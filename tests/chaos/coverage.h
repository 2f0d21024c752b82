// Coverage: which operations were done on which kind of connection and in which callback.
#pragma once

#include <cstdint>

#include "chaos/channel.h"
#include "chaos/program.h"

namespace spate::chaos {

// Plain numbers, so that it may lie in memory that processes share.
struct Coverage {
  static constexpr int kNone = kKinds;  // Of no connection.

  void note(Op op, int kind, Where where) {
    ++hits[static_cast<int>(op)][kind][static_cast<int>(where)];
  }
  std::uint64_t count(Op op, Where where) const {
    std::uint64_t sum = 0;
    for (int kind = 0; kind <= kKinds; ++kind)
      sum += hits[static_cast<int>(op)][kind][static_cast<int>(where)];
    return sum;
  }

  std::uint64_t hits[kOps][kKinds + 1][kWheres];
};

}  // namespace spate::chaos
