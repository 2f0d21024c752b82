/* Makes the Loop of spate's contestants: on the backend that --backend names, or on spate's
   default. A contestant whose backend is missing in this library or kernel prints that, and is
   left out. */
#ifndef BENCH_HARNESS_SPATE_LOOP_H
#define BENCH_HARNESS_SPATE_LOOP_H

#include <spate/loop.h>

#include <memory>
#include <string>
#include <utility>

#include "harness/contestant.h"

inline std::unique_ptr<spate::Loop> bench_loop(int argc, char** argv,
                                               spate::LoopOptions options = {}) {
  options.backend = bench_text(argc, argv, "backend", "auto");
  spate::Result<std::unique_ptr<spate::Loop>> loop = spate::Loop::create(options);
  if (!loop) {
    const std::string name(options.backend);
    bench_leave_out((name + ": " + loop.error().message()).c_str());
  }
  return std::move(*loop);
}

#endif
