// The operations of coroutines without the kernel: await, spawn, sleep, wait for two, pass values
// on. A contestant includes this file and defines
//
//   class Contestant {
//    public:
//     static void version();                      // calls bench_version()
//     std::uint64_t children(std::uint64_t n);    // n times: awaits one that gives 1 at once
//     std::uint64_t spawns(std::uint64_t n);      // spawns one that waits for a turn, and joins it
//     std::uint64_t sleeps(std::uint64_t n);      // sleeps for no time
//     std::uint64_t pairs(std::uint64_t n);       // awaits two together that wait for a turn
//     std::uint64_t passes(std::uint64_t n);      // a value through a channel that has room for 16
//   };
//
// Each function runs a loop until all is done, in coroutines, and returns how much was done.
#ifndef BENCH_WORKLOADS_CORO_H
#define BENCH_WORKLOADS_CORO_H

#include <string_view>

#include "harness/contestant.h"

inline constexpr std::size_t kRoom = 16;

template <class Contestant>
int bench_coro(int argc, char** argv) {
  using Kind = std::uint64_t (Contestant::*)(std::uint64_t);
  struct {
    std::string_view name;
    Kind run;
  } constexpr kKinds[] = {{"child", &Contestant::children},
                          {"spawn", &Contestant::spawns},
                          {"sleep", &Contestant::sleeps},
                          {"all", &Contestant::pairs},
                          {"channel", &Contestant::passes}};
  const std::string_view wanted = bench_text(argc, argv, "kind", "child");
  const auto count = std::uint64_t(bench_number(argc, argv, "count", 1000));
  Contestant::version();
  Contestant contestant;
  for (const auto& kind : kKinds) {
    if (kind.name != wanted) continue;
    (contestant.*kind.run)(100);  // Warms up: allocates everything that is needed once.
    const std::uint64_t begin = bench_now_ns();
    const std::uint64_t done = (contestant.*kind.run)(count);
    bench_metric("operation_ns", "ns", double(bench_now_ns() - begin) / double(count));
    bench_work("done", done);
    bench_ops("operation", count);
    return 0;
  }
  bench_die("no such kind");
  return 1;
}

#endif
