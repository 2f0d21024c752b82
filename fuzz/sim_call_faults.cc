// Plans of failing system calls: an accepted plan has sane rules, a rejected one has a reason.
#include "sim/syscalls/call_faults.h"

#include "input.h"

namespace spate::fuzz {
namespace {

using sim::Call;
using sim::CallFaults;

void use(CallFaults::Rules rules) {
  check(!rules.empty() && rules.size() <= 64);
  for (const CallFaults::Rule& rule : rules)
    check(rule.calls != 0 && rule.share >= 0 && rule.share <= 1 && rule.first >= 1 &&
          rule.last >= rule.first);
  CallFaults faults(std::move(rules), 1);
  for (unsigned i = 0; i < 100; ++i) {
    const CallFaults::Verdict verdict = faults.decide(static_cast<Call>(i % sim::kCallKinds));
    const std::size_t less = verdict.shortened(i);
    check(less <= i && (less != 0 || i == 0));
  }
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::Input input(data, size);
  std::string_view text = input.rest();
  if (text.ends_with('\n')) text.remove_suffix(1);  // The newline of a seed that is a text file.
  auto rules = spate::sim::CallFaults::parse(text);
  if (rules) {
    spate::fuzz::use(std::move(*rules));
  } else {
    spate::fuzz::check(!rules.error().empty());
  }
  return 0;
}
