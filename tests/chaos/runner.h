// Runner: does programs by their seeds in a child process, so that a crash is a result like any
// other, and finds the fewest steps that still fail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chaos/coverage.h"
#include "chaos/program.h"

namespace spate::chaos {

struct Batch {
  std::string_view backend;
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

// Does one program here and now; what fails calls fail().
void run_program(const Program& program, std::string_view backend, Coverage* coverage,
                 bool is_told = false);

// All seeds of the batch. True if all promises held; else the first failure has been printed, with
// the command that repeats it and its fewest steps. Adds up in `coverage` if that is wanted.
bool run_batch(const Batch& batch, Coverage* coverage);

// Goes on after a failure, and prints how often each promise was broken, and by which seed first.
bool survey(const Batch& batch);

}  // namespace spate::chaos
