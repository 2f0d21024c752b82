// Part: the functions that one object of the mixed program offers to the others. Each is compiled
// from part.cc, by another compiler or with other options.
#pragma once

#include <array>
#include <string>

#include "spate/coro/channel.h"
#include "spate/coro/generator.h"
#include "spate/coro/task.h"

namespace mixed {

// Counts its live objects, so that a missing or a second destruction is noticed.
struct Counted {
  explicit Counted(int its_value) : value(its_value) { ++alive; }
  Counted(const Counted& other) : value(other.value) { ++alive; }
  Counted(Counted&& other) noexcept : value(other.value) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }

  int value;
  static int alive;
};

using Values = spate::coro::Channel<Counted>;

struct Part {
  const char* name;
  bool has_exceptions;
  std::array<std::size_t, 8> sizes;  // The sizes of the types that frames contain.

  spate::coro::Task<Counted> (*waits)(int value);
  spate::coro::Task<spate::Result<Counted>> (*fails)();
  spate::coro::Task<int> (*throws)(bool at_once);  // If it can.
  spate::coro::Generator<Counted> (*counts)(int last);
  spate::coro::Task<void> (*sends)(Values* into, int count);
  spate::coro::Task<std::string> (*talks)(spate::Loop* loop);
  // Does all that with another part. Returns an error text, or "".
  std::string (*works_with)(spate::Loop& loop, const Part& other);
};

}  // namespace mixed
