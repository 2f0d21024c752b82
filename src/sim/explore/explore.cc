#include "spate/sim/explore.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include "sim/explore/play.h"
#include "sim/explore/shrink.h"
#include "sim/kernel/environment.h"
#include "sim/kernel/kernel.h"

namespace spate::sim {

namespace {

std::string joined(const Numbers& numbers) {
  if (numbers.empty()) return "none";
  std::string text;
  for (const std::uint64_t number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

// Returns the first difference.
std::string difference_of(const std::vector<std::string>& one,
                          const std::vector<std::string>& other) {
  const auto [here, there] = std::ranges::mismatch(one, other);
  if (here == one.end() && there == other.end()) return "two others did not differ";
  const std::string number = std::to_string(here - one.begin() + 1);
  return "event " + number + " of one: " + (here == one.end() ? "none" : *here) + "\nevent " +
         number + " of the other: " + (there == other.end() ? "none" : *there);
}

class Explorer {
 public:
  Explorer(const ExploreOptions& options, const Program& program)
      : options_(options), program_(program) {
    const auto alone = number_in_environment("SPATE_SEED");
    is_alone_ = alone.has_value();
    const Span wanted = span_in_environment("SPATE_SEEDS", {options.first_seed, options.seeds});
    seeds_ = is_alone_ ? 1 : wanted.count;
    first_seed_ = alone.value_or(wanted.first);
    only_ = numbers_in_environment("SPATE_ONLY");
  }

  Exploration run() {
    for (std::uint64_t seed = first_seed_; found_.seeds < seeds_ && !found_.failed; ++seed)
      run(seed);
    if (found_.failed || is_alone_) return std::move(found_);
    for (const auto& [name, held] : seen_)
      if (!held) found_.never.push_back(name);
    return std::move(found_);
  }

 private:
  Play play_once(const Trial& trial) {
    return options_.isolates ? play_apart(trial, program_) : play(trial, program_);
  }

  void run(std::uint64_t seed) {
    const Play first = play_once({.seed = seed, .only = only_});
    found_.trace = mix(found_.trace ^ first.trace);
    found_.all_faults += first.faults;
    found_.all_time += first.time;
    for (const auto& [name, held] : first.findings.sometimes) seen_[name] |= held;
    if (first.findings.failure) {
      found_.failed = seed;
      found_.faults = first.faults;
      keep(first);
    }
    if (found_.seeds++ != 0 && !found_.failed) return;
    if (!is_like(first, play_once({.seed = seed, .only = only_}))) {
      found_.is_unsteady = true;
      compare(seed);
    } else if (found_.failed && !only_) {
      shrink_failure();
    }
  }

  static bool is_like(const Play& one, const Play& other) {
    const auto& failure = one.findings.failure;
    const auto& another = other.findings.failure;
    if (failure.has_value() != another.has_value() || one.trace != other.trace) return false;
    return !failure || failure->is_like(*another);
  }

  void compare(std::uint64_t seed) {
    const Trial trial{.seed = seed, .only = only_, .keeps_all_events = true};
    const Play one = play_once(trial);
    found_.difference = difference_of(one.events, play_once(trial).events);
  }

  void shrink_failure() {
    if (options_.shrink_runs == 0) return;
    Numbers all(found_.faults);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i + 1;
    const auto fails = [this](const Numbers& only) {
      const Play play = play_once({.seed = *found_.failed, .only = only});
      return play.findings.failure && play.findings.failure->name == found_.failure;
    };
    found_.needed = shrink(std::move(all), fails, options_.shrink_runs);
    keep(play_once({.seed = *found_.failed, .only = found_.needed}));
  }

  void keep(const Play& failed) {
    const Findings::Failure& failure = *failed.findings.failure;
    found_.failure = failure.name;
    found_.time = failure.time;
    found_.last_events = failure.events;
    found_.state = failure.state;
    found_.needed_lines = failed.passed;
  }

  const ExploreOptions& options_;
  const Program& program_;
  bool is_alone_ = false;
  std::uint64_t seeds_ = 0;
  std::uint64_t first_seed_ = 0;
  std::optional<Numbers> only_;
  std::map<std::string, bool> seen_;
  Exploration found_;
};

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + '\n';
  return text;
}

}  // namespace

void always(bool condition, std::string_view name) {
  Kernel* kernel = Kernel::current();
  if (condition || kernel == nullptr || kernel->findings.failure) return;
  kernel->findings.failure = failure_of(name);
}

void sometimes(bool condition, std::string_view name) {
  if (Kernel* kernel = Kernel::current())
    kernel->findings.sometimes[std::string(name)] |= condition;
}

void note(std::string_view text) {
  if (Kernel* kernel = Kernel::current())
    kernel->note({.kind = EventKind::noted,
                  .from = kernel->host,
                  .hash = hash_of(text),
                  .text = std::string(text)});
}

std::string Exploration::report() const {
  std::string text;
  if (failed) {
    const std::string seed = std::to_string(*failed);
    text += "seed " + seed + ", after " + seconds_of(time) + ": not so: " + failure + '\n';
    text += "repeat it: SPATE_SEED=" + seed + ' ';
    if (needed && faults != 0) text += "SPATE_ONLY=" + joined(*needed) + ' ';
    text += std::string(program_invocation_name) + '\n';
    if (needed && faults != 0)
      text += "it needs " + std::to_string(needed->size()) + " of " + std::to_string(faults) +
              " faults\n" + indented(needed_lines);
    if (!last_events.empty()) text += "the last events:\n" + indented(last_events);
    text += state;
  }
  if (is_unsteady)
    text += "two runs of one seed differ: the program reads a clock, an address or the like\n" +
            difference + '\n';
  for (const std::string& name : never)
    text += "never, in " + std::to_string(seeds) + " seeds: " + name + '\n';
  return text;
}

Exploration explore(const ExploreOptions& options, const std::function<void(World&)>& program) {
  return Explorer(options, program).run();
}

}  // namespace spate::sim
