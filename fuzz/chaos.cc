// Chaos: the random programs of tests/chaos, with the fuzzer's bytes as their decisions.
#include <cstddef>
#include <cstdint>

#include "chaos/runner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr const char* kBackends[4] = {"epoll", "poll", "select", "io_uring"};
  if (size == 0) return 0;
  spate::chaos::Tape tape(data + 1, size - 1);
  spate::chaos::run_program(spate::chaos::make_program(tape), kBackends[data[0] % 4], nullptr);
  return 0;
}
