#include "sim/syscalls/real_faults.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "sim/kernel/environment.h"

namespace spate::sim {

namespace {

RealFaults read_environment() {
  RealFaults found = real_faults(std::getenv("SPATE_FAULTS"), std::getenv("SPATE_SEED"),
                                 ::getauxval(AT_SECURE) != 0);
  print_line(found.notice);
  if (found.is_mistaken) ::_exit(kMistakenEnvironment);
  return found;
}

}  // namespace

RealFaults real_faults(const char* text, const char* seed, bool is_privileged) {
  if (text == nullptr || *text == '\0') return {};
  const std::string setting = std::string("spate: SPATE_FAULTS=") + text;
  if (is_privileged)
    return {.faults = {},
            .notice = setting + ": ignored, as this program has rights that its user has not\n"};
  auto rules = CallFaults::parse(text);
  if (!rules)
    return {.faults = {}, .notice = setting + ": " + rules.error() + '\n', .is_mistaken = true};
  const std::optional<std::uint64_t> number =
      seed == nullptr ? std::optional<std::uint64_t>(1) : number_in(seed);
  if (!number)
    return {
        .faults = {},
        .notice = std::string("spate: SPATE_SEED=") + seed + ": a decimal number was expected\n",
        .is_mistaken = true};
  return {.faults = std::make_unique<CallFaults>(std::move(*rules), *number),
          .notice = setting + " SPATE_SEED=" + std::to_string(*number) +
                    ": system calls fail on purpose\n"};
}

CallFaults* faults_of_process() {
  static const RealFaults faults = read_environment();
  return faults.faults.get();
}

}  // namespace spate::sim
