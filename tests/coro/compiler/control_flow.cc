// Patterns: conditions, loops, scopes.
#include <vector>

#include "harness.h"

namespace patterns {
namespace {

Task<int> while_header() {
  while (co_await more()) {
  }
  co_return 7;
}
Task<int> while_header_after_a_local() {
  int count = 5;
  while (co_await more()) ++count;
  co_return count;
}
Task<int> if_header() {
  if (co_await more()) co_return 7;
  co_return 0;
}
Task<int> if_header_after_a_local() {
  int result = 0;
  if (co_await more()) result = 7;
  co_return result;
}
Task<int> for_header() {
  for (; co_await more();) {
  }
  co_return 7;
}
Task<int> do_header() {
  do {
  } while (co_await more());
  co_return 7;
}
Task<int> switch_header() {
  switch (co_await gives(3)) {
    case 3:
      co_return 7;
    default:
      co_return 0;
  }
}
Task<int> forever_and_break() {
  for (;;) {
    const bool goes_on = co_await more();
    if (!goes_on) break;
  }
  co_return 7;
}
Task<int> goto_over_an_await() {
  int count = 0;
again:
  co_await Gate{};
  if (++count < 7) goto again;
  co_return count;
}

Task<int> conditional_of_objects() {
  const Counted result = co_await more() ? Counted(7) : Counted(0);
  co_return result.value();
}
Task<int> conditional_of_scalars() {
  const int result = co_await more() ? 7 : 0;
  co_return result;
}
Task<int> conditional_whose_arms_wait() {
  const bool first = rounds == 0;
  const int result = first ? co_await gives(7) : co_await gives(0);
  co_return result;
}
Task<int> logical_and() {
  const Counted local(7);
  const bool both = co_await more() && co_await more();
  co_return both ? local.value() : 0;
}
Task<int> logical_or() {
  const Counted local(7);
  const bool either = co_await more() || co_await more();
  co_return either ? local.value() : 0;
}

Task<std::vector<Counted>> three_and_four() {
  co_await Gate{};
  std::vector<Counted> result;
  result.emplace_back(3);
  result.emplace_back(4);
  co_return result;
}
Task<int> range_for() {
  int total = 0;
  for (const Counted& it : co_await three_and_four()) total += it.value();
  co_return total;
}
Task<int> range_for_that_waits_inside() {
  const std::vector<Counted> all = co_await three_and_four();
  int total = 0;
  for (const Counted& it : all) {
    const int value = co_await gives(it.value());
    total += value;
  }
  co_return total;
}

Task<int> local_in_a_loop() {
  int total = 0;
  for (int i = 0; i < 7; ++i) {
    const Counted one(1);
    co_await Gate{};
    total += one.value();
  }
  co_return total;
}
Task<int> nested_scopes() {
  const Counted a(1);
  {
    const Counted b(2);
    co_await Gate{};
    {
      const Counted c(4);
      co_await Gate{};
      co_return a.value() + b.value() + c.value();
    }
  }
}

// g++ before 12.3: GCC 106188, 106713.
constexpr Outcome kHeader = Outcome::broken;

constexpr Pattern kPatterns[] = {
    PATTERN(while_header, kHeader),
    PATTERN(while_header_after_a_local),
    PATTERN(if_header, kHeader),
    PATTERN(if_header_after_a_local),
    PATTERN(for_header, kHeader),
    PATTERN(do_header, kHeader),
    PATTERN(switch_header, kHeader),
    PATTERN(forever_and_break),
    PATTERN(goto_over_an_await),
    PATTERN(conditional_of_objects, Outcome::twice),
    PATTERN(conditional_of_scalars),
    PATTERN(conditional_whose_arms_wait),
    PATTERN(logical_and),
    PATTERN(logical_or),
    PATTERN(range_for),
    PATTERN(range_for_that_waits_inside),
    PATTERN(local_in_a_loop),
    PATTERN(nested_scopes),
};

}  // namespace

const std::span<const Pattern> kControlFlow = kPatterns;

}  // namespace patterns
