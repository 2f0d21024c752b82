// Patterns: children, exceptions, early ends, large frames, long chains.
#include <array>
#include <coroutine>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness.h"

namespace patterns {
namespace {

// ---- children

Task<int> child_kept_in_a_local() {
  Task<int> kept = child_by_value(Counted(6));
  co_await Gate{};
  const int result = co_await std::move(kept);
  co_return result;
}
Task<int> child_never_started() {
  const Task<int> kept = child_by_value(Counted(6));
  co_await Gate{};
  co_return 7;
}
Task<int> seven_children() {
  std::vector<Task<int>> children;
  for (int i = 0; i < 7; ++i) children.push_back(child_by_value(Counted(0)));
  int total = 0;
  for (Task<int>& one : children) {
    const int value = co_await std::move(one);
    total += value;
  }
  co_return total;
}
Task<int> down(int depth) {
  const Counted local(1);
  if (depth == 0) co_await Gate{};
  if (depth == 0) co_return 0;
  const int below = co_await down(depth - 1);
  co_return below + local.value();
}
Task<int> recursion() {
  const int result = co_await down(7);
  co_return result;
}

// ---- exceptions

Task<int> throws(int value) {
  const Counted local(value);
  co_await Gate{};
  throw std::runtime_error("thrown");
}
Task<int> exception_of_a_child() {
  const Counted local(7);
  int result = 0;
  try {
    result = co_await throws(1);
  } catch (const std::runtime_error&) {
    result = local.value();
  }
  co_return result;
}
Task<int> exception_beside_temporaries() {
  try {
    const int result = sum(Counted(1), Counted(co_await throws(1)));
    co_return result;
  } catch (const std::runtime_error&) {
  }
  co_return 7;
}
Task<int> waits_after_a_catch() {
  const Counted local(7);
  bool is_caught = false;
  try {
    co_await throws(1);
  } catch (const std::runtime_error&) {
    is_caught = true;
  }
  if (is_caught) co_await Gate{};
  co_return local.value();
}
Task<int> throws_before_it_waits() {
  const Counted local(1);
  if (rounds == 0) throw std::runtime_error("thrown");
  co_return 0;
}
Task<int> exception_at_once() {
  int result = 0;
  try {
    result = co_await throws_before_it_waits();
  } catch (const std::runtime_error&) {
    result = 7;
  }
  co_await Gate{};
  co_return result;
}

// ---- early ends

// Ends the coroutine that awaits it: resumes its parent instead.
struct EndsIt {
  explicit EndsIt(int its_value) : value(its_value) {}
  bool await_ready() const { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Task<int>::promise_type> handle) {
    handle.promise().result.push_back(value);
    const std::coroutine_handle<> parent = handle.promise().parent;
    return parent ? parent : std::noop_coroutine();
  }
  void await_resume() {}
  Counted it{1};
  int value;
};
Task<int> ends_early() {
  const Counted local(1);
  co_await Gate{};
  co_await EndsIt(7);
  co_return 0;
}
Task<int> early_end_of_a_child() {
  const Counted local(3);
  const int result = co_await ends_early();
  co_return result;
}

// ---- sizes

Task<int> large_local() {
  std::array<char, 100'000> room{};
  co_await Gate{};
  room.back() = 7;
  co_return room.back();
}
constexpr int kMany = 1'000'000;
Task<int> at_once(int value) { co_return value; }
Task<int> a_million_children_by_call() {
  int total = 0;
  for (int i = 0; i < kMany; ++i) {
    const int one = co_await at_once(1);
    total += one;
  }
  co_return total == kMany ? 7 : 0;
}
Task<int> a_million_children_by_transfer() {
  int total = 0;
  for (int i = 0; i < kMany; ++i) {
    const int one = co_await Transferred(at_once(1));
    total += one;
  }
  co_return total == kMany ? 7 : 0;
}

#if defined(__clang__) || defined(HAS_TAIL_CALLS)  // g++ makes tail calls at -O2 only.
constexpr Outcome kTransfer = Outcome::ok;
#else
constexpr Outcome kTransfer = Outcome::broken;  // The stack overflows.
#endif

constexpr Pattern kPatterns[] = {
    PATTERN(child_kept_in_a_local),
    PATTERN(child_never_started),
    PATTERN(seven_children),
    PATTERN(recursion),
    PATTERN(exception_of_a_child),
    PATTERN(exception_beside_temporaries),
    PATTERN(waits_after_a_catch),
    PATTERN(exception_at_once),
    PATTERN(early_end_of_a_child),
    PATTERN(large_local),
    PATTERN(a_million_children_by_call),
    PATTERN(a_million_children_by_transfer, kTransfer),
};

}  // namespace

const std::span<const Pattern> kLifetimes = kPatterns;

}  // namespace patterns
