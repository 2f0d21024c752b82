// A callable of a Function throws when it is copied or called. The Function keeps its callable, and
// no callable is destroyed twice or never.
#include <array>
#include <cstddef>
#include <cstdio>
#include <stdexcept>

#include "spate/function.h"

namespace {

using Adding = spate::Function<int(int)>;

// Throws when it is copied, after its member was copied.
template <std::size_t size>
class Throwing {
 public:
  Throwing() = default;
  Throwing(const Throwing& other) : counted_(other.counted_) { throw std::runtime_error("copy"); }
  int operator()(int number) const { return number; }

  static int live() { return Counted::live; }

 private:
  struct Counted {
    Counted() { ++live; }
    Counted(const Counted&) { ++live; }
    ~Counted() { --live; }
    inline static int live = 0;
  };
  Counted counted_;
  std::array<std::byte, size> bytes_{};
};

template <class Call>
bool throws(Call call) {
  try {
    call();
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

int failures = 0;
void check(bool holds, const char* rule) {
  if (holds) return;
  std::printf("broken: %s\n", rule);
  ++failures;
}

template <std::size_t size>
void copy() {
  const Throwing<size> callable;
  Adding function = [](int number) { return number + 10; };
  check(throws([&] { function = callable; }), "an assignment passes the exception of a copy");
  check(function && function(1) == 11, "a failed assignment keeps the callable");
  check(throws([&] { const Adding other = callable; }), "so does a construction");
  check(Throwing<size>::live() == 1, "no copy is left");
}

void call() {
  int calls = 0;
  Adding function = [&calls](int number) -> int {
    if (++calls == 1) throw std::runtime_error("call");
    return number;
  };
  check(throws([&] { function(1); }), "a call passes the exception of the callable");
  check(function && function(2) == 2, "the callable is still there after it has thrown");
}

}  // namespace

int main() {
  copy<1>();
  copy<100>();
  call();
  return failures == 0 ? 0 : 1;
}
