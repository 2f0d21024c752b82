#include "spate/sim/explore.h"

#include <cerrno>
#include <cstdlib>

#include "sim/kernel.h"
#include "sim/tcp.h"

namespace spate::sim {

namespace {

std::optional<std::uint64_t> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

struct Play {
  Findings findings;
  std::uint64_t trace = 0;
};

Play play(std::uint64_t seed, const std::function<void(World&)>& program) {
  World world(seed);
  program(world);
  return {std::move(Kernel::current()->findings), world.trace()};
}

std::string seconds_of(Nanos time) {
  std::string digits = std::to_string(time.count() % 1'000'000'000 + 1'000'000'000);
  digits[0] = '.';
  return std::to_string(time.count() / 1'000'000'000) + digits + " s";
}

}  // namespace

void always(bool condition, std::string_view name) {
  Kernel* kernel = Kernel::current();
  if (condition || kernel == nullptr || kernel->findings.failure) return;
  kernel->findings.failure = {std::string(name), kernel->now() - Kernel::kBeginning};
}

void sometimes(bool condition, std::string_view name) {
  if (Kernel* kernel = Kernel::current())
    kernel->findings.sometimes[std::string(name)] |= condition;
}

void note(std::string_view text) {
  if (Kernel* kernel = Kernel::current()) kernel->note(print_of(text));
}

std::string Exploration::report() const {
  std::string text;
  if (failed) {
    const std::string seed = std::to_string(*failed);
    text += "seed " + seed + ", after " + seconds_of(time) + ": not so: " + failure + '\n';
    text += "repeat it: SPATE_SEED=" + seed + ' ' + program_invocation_name + '\n';
  }
  if (is_unsteady)
    text += "two runs of one seed differ: the program reads a clock, an address or the like\n";
  for (const std::string& name : never)
    text += "never, in " + std::to_string(seeds) + " seeds: " + name + '\n';
  return text;
}

Exploration explore(std::uint64_t first_seed, std::uint64_t seeds,
                    const std::function<void(World&)>& program) {
  const auto alone = number_in_environment("SPATE_SEED");
  seeds = alone ? 1 : number_in_environment("SPATE_SEEDS").value_or(seeds);
  first_seed = alone.value_or(first_seed);
  Exploration found;
  std::map<std::string, bool> seen;
  for (std::uint64_t seed = first_seed; found.seeds < seeds && !found.failed; ++seed) {
    const Play first = play(seed, program);
    found.trace = mix(found.trace ^ first.trace);
    for (const auto& [name, held] : first.findings.sometimes) seen[name] |= held;
    if (first.findings.failure) {
      found.failed = seed;
      found.failure = first.findings.failure->name;
      found.time = first.findings.failure->time;
    }
    if (found.seeds++ != 0 && !found.failed) continue;
    const Play second = play(seed, program);
    found.is_unsteady |=
        second.trace != first.trace || second.findings.failure != first.findings.failure;
  }
  if (found.failed || alone) return found;
  for (const auto& [name, held] : seen)
    if (!held) found.never.push_back(name);
  return found;
}

}  // namespace spate::sim
