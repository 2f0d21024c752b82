// OneShots: one-shot calls that the loop owns until it has made them. Calls on a signal stay until
// the loop is destroyed.
#pragma once

#include <system_error>

#include "base/list.h"
#include "base/slab.h"
#include "core/internal.h"
#include "spate/loop.h"

namespace spate {

class ActiveList;

class OneShots {
 public:
  explicit OneShots(LoopCore& loop);
  ~OneShots();
  OneShots(const OneShots&) = delete;
  OneShots& operator=(const OneShots&) = delete;

  // The functions of Loop with these names.
  std::error_code once(int fd, Events events, Nanos timeout, OnceCallback callback);
  std::error_code after(Nanos delay, Job task);
  bool defer(Job task);
  std::error_code on_signal(int signum, Job callback);

  void list_active(ActiveList& list) const;
  // Drops all calls.
  void clear();

 private:
  class OneShot;
  class Once;
  class Later;
  class OnSignal;

  Later* make_later(Job task);

  LoopCore& loop_;
  Slab<Later> places_;
  List<OneShot> all_;  // Newest first.
};

}  // namespace spate
