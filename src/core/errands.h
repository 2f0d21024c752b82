// Errands: calls that the loop owns until it has made them, or, those on a signal, for good.
#pragma once

#include <system_error>

#include "base/slab.h"
#include "core/internal.h"
#include "spate/loop.h"

namespace spate {

class Errands {
 public:
  explicit Errands(LoopCore& loop);
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // What Loop's functions of the same name do.
  std::error_code once(int fd, Events events, Nanos timeout, OnceCallback callback);
  std::error_code after(Nanos delay, Job task);
  bool defer(Job task);
  std::error_code on_signal(int signum, Job callback);

  // Forgets them all, uncalled.
  void clear();

 private:
  class Errand;
  class Once;
  class Later;
  class OnSignal;

  Later* make_later(Job task);

  LoopCore& loop_;
  Slab<Later> places_;
  Errand* first_ = nullptr;
};

}  // namespace spate
