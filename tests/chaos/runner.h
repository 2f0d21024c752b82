// Runner: runs programs by their seeds in a child process, so that a crash is a result like any
// other, and finds the fewest steps that still fail.
#pragma once

#include <cstdint>
#include <string>
#include <cstddef>
#include <string_view>
#include <vector>

#include "chaos/coverage.h"
#include "chaos/program.h"

namespace spate::chaos {

struct Batch {
  std::string_view backend;
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

// Runs one program in this process; a failure calls fail().
void run_program(const Program& program, std::string_view backend, Coverage* coverage,
                 bool is_told = false);

// Runs the program `count` times on one loop. Returns the bytes of memory in use after each.
std::vector<std::size_t> repeat_program(const Program& program, std::string_view backend,
                                        std::size_t count);

// Runs all seeds of the batch. Returns true if all promises held. Otherwise it has printed the
// first failure, with the command that repeats it and its fewest steps. Adds to `coverage` unless
// that is null.
bool run_batch(const Batch& batch, Coverage* coverage);

// Continues after a failure, and prints how often each promise was broken, and by which seed first.
bool survey(const Batch& batch);

}  // namespace spate::chaos
