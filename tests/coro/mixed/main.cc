// A program of objects that were compiled with and without exceptions and RTTI, at several levels,
// by both compilers: each uses the coroutines of each. All have the same inline functions; the
// linker keeps one copy of each.
#include <cstdio>

#include "part.h"
#include "spate/loop.h"

namespace mixed {

int Counted::alive = 0;

#define PART(name) extern const Part name;
#include "parts.inc"
#undef PART

namespace {

constexpr const Part* kParts[] = {
#define PART(name) &name,
#include "parts.inc"
#undef PART
};

// Returns true if both parts have equal sizes, and each operation between them has the right
// result.
bool check(const Part& one, const Part& other) {
  const auto loop = spate::must(spate::Loop::create());
  const std::string wrong = one.works_with(*loop, other);
  const bool is_right = wrong.empty() && one.sizes == other.sizes && Counted::alive == 0;
  std::printf("%s with %s: %s, %d left\n", one.name, other.name,
              wrong.empty() ? "right" : wrong.c_str(), Counted::alive);
  return is_right;
}

}  // namespace
}  // namespace mixed

int main() {
  int wrong = 0;
  for (const mixed::Part* one : mixed::kParts) {
    for (const mixed::Part* other : mixed::kParts) wrong += !mixed::check(*one, *other);
  }
  return wrong == 0 ? 0 : 1;
}
