#include "base/fault.h"

#ifdef SPATE_FAULTS

#include "base/mix.h"

namespace spate {

std::atomic<FaultPlan*> installed_plan{nullptr};

FaultPlan& FaultPlan::fail_nth(SystemCall call, std::uint64_t nth, int error, std::uint64_t times) {
  rules_.push_back({.call = call, .error = error, .first = nth, .last = nth + times - 1});
  return *this;
}

FaultPlan& FaultPlan::fail_share(SystemCall call, double share, int error, std::uint64_t seed) {
  const double bounded = share < 0 ? 0 : share > 1 ? 1 : share;
  const auto threshold = static_cast<std::uint64_t>(bounded * 18446744073709549568.0);
  rules_.push_back({.call = call, .error = error, .threshold = threshold, .seed = seed});
  return *this;
}

FaultPlan& FaultPlan::shorten_share(SystemCall call, double share, std::size_t max,
                                    std::uint64_t seed) {
  fail_share(call, share, 0, seed);
  rules_.back().max = max;
  return *this;
}

FaultPlan& FaultPlan::before_nth(SystemCall call, std::uint64_t nth, std::function<void()> what) {
  moments_.push_back({call, nth, std::move(what)});
  return *this;
}

bool FaultPlan::falls_on(const Rule& rule, std::uint64_t number) {
  const bool by_number = number >= rule.first && number <= rule.last;
  // Depends on the call's number and the seed only, not on other calls in between.
  return by_number || mix(rule.seed ^ mix(number)) < rule.threshold;
}

int FaultPlan::decide(SystemCall call) {
  const std::uint64_t number = ++calls_[index(call)];
  for (const Moment& moment : moments_) {
    if (moment.call == call && moment.number == number) moment.what();
  }
  for (const Rule& rule : rules_) {
    if (rule.call != call || rule.max != 0 || !falls_on(rule, number)) continue;
    ++failures_[index(call)];
    return rule.error;
  }
  return 0;
}

std::size_t FaultPlan::shorten(SystemCall call, std::size_t size) {
  const std::uint64_t number = calls(call);
  for (const Rule& rule : rules_) {
    if (rule.call != call || size <= rule.max || !falls_on(rule, number)) continue;
    if (rule.max != 0) return ++failures_[index(call)], rule.max;
  }
  return size;
}

namespace {

std::atomic<int> asking{0};  // Threads inside the installed plan.

// Counts this thread before it reads the pointer. So ~FaultScope(), which clears the pointer before
// it reads the count, either sees this thread or is seen by it.
class Asking {
 public:
  Asking() { ++asking; }
  ~Asking() { --asking; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  FaultPlan* plan() const { return installed_plan.load(); }
};

}  // namespace

int ask_installed(SystemCall call) {
  const Asking thread;
  FaultPlan* plan = thread.plan();
  return plan == nullptr ? 0 : plan->decide(call);
}

std::size_t ask_installed(SystemCall call, std::size_t size) {
  const Asking thread;
  FaultPlan* plan = thread.plan();
  return plan == nullptr ? size : plan->shorten(call, size);
}

FaultScope::FaultScope(FaultPlan& plan) : asking_before_(asking.load()) {
  installed_plan.store(&plan);
}

FaultScope::~FaultScope() {
  installed_plan.store(nullptr);
  while (asking.load() > asking_before_) {
  }
}

}  // namespace spate

#endif
