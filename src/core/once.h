// Once: the one-shot "descriptor or timeout", whose memory is the loop's until it has called.
#pragma once

#include <system_error>

#include "core/internal.h"
#include "spate/loop.h"

namespace spate {

class OnceList {
 public:
  explicit OnceList(LoopCore& loop) : loop_(loop) {}
  ~OnceList();
  OnceList(const OnceList&) = delete;
  OnceList& operator=(const OnceList&) = delete;

  std::error_code add(int fd, Events events, Nanos timeout, OnceCallback callback);
  // Forgets them all, uncalled.
  void clear();

 private:
  class Entry;

  LoopCore& loop_;
  Entry* first_ = nullptr;
};

}  // namespace spate
