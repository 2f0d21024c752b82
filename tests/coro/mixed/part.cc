// One object of the mixed program: PART is its name.
#include "part.h"

#include <tuple>
#include <utility>
#include <variant>

#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"

namespace mixed {
namespace {

using namespace std::chrono_literals;
using namespace spate;
using coro::Generator;
using coro::Task;

Task<Counted> waits(int value) {
  const Counted local(value);
  co_await coro::next_turn();
  co_return local;
}
Task<Result<Counted>> fails() {
  co_await coro::next_turn();
  co_return std::unexpected(Error::ended);
}
Task<int> throws(bool at_once) {
  const Counted local(1);
  if (!at_once) co_await coro::next_turn();
#ifdef __cpp_exceptions
  throw 7;
#endif
  co_return 7;
}
Generator<Counted> counts(int last) {
  for (int i = 1; i <= last; ++i) {
    co_yield Counted(i);
    co_await coro::next_turn();
  }
}
Task<void> sends(Values* into, int count) {
  for (int i = 1; i <= count; ++i) {
    Counted value(i);
    co_await into->send(std::move(value));
  }
  into->close();
}
Task<int> sum_of(Generator<Counted> values) {
  int sum = 0;
  for (;;) {
    const std::optional<Counted> value = co_await values.next();
    if (!value) co_return sum;
    sum += value->value;
  }
}
Task<int> receives(Values* from) {
  int sum = 0;
  for (;;) {
    const std::optional<Counted> value = co_await from->receive();
    if (!value) co_return sum;
    sum += value->value;
  }
}
Task<Result<int>> asks(coro::Stream* stream) {
  co_await coro::or_return(stream->send("hello\n"));
  const Bytes answer = co_await coro::or_return(stream->read(Delimiter{}));
  co_return static_cast<int>(answer.size());
}
Task<Result<int>> echoes(coro::Stream* stream) {
  const Bytes some = co_await coro::or_return(stream->read_some());
  co_await coro::or_return(stream->send(some));
  co_return 0;
}
Task<std::string> talks(Loop* loop) {
  auto pair = must(spate::Stream::memory_pair(*loop));
  coro::Stream one(std::move(pair.first));
  coro::Stream other(std::move(pair.second));
  const auto both = co_await coro::when_all(asks(&one), echoes(&other));
  if (!both || std::get<0>(*both) != 5) co_return "talks";
  co_return "";
}

// ---- with another part, whose coroutines these await

Task<Result<int>> passes_on(const Part* other) {
  const Counted local(1);
  const Counted value = co_await coro::or_return(other->fails());
  co_return value.value;
}
Task<Counted> for_ever(const Part* other) {
  co_await coro::sleep(1h);
  co_return co_await other->waits(1);
}
#ifdef __cpp_exceptions
Task<int> catches(const Part* other, bool at_once) {
  const Counted local(1);
  int caught = 0;
  try {
    co_await other->throws(at_once);
  } catch (int thrown) {
    caught = thrown;
  }
  co_return caught;
}
#endif

Task<std::string> work(Loop* loop, const Part* other) {
  const Counted waited = co_await other->waits(3);
  if (waited.value != 3) co_return "waits";
  const Result<int> failed = co_await passes_on(other);
  if (failed || failed.error() != Error::ended) co_return "or_return";

  const int counted = co_await sum_of(other->counts(4));
  if (counted != 10) co_return "generator";
  Values values(2);
  const auto passed = co_await coro::when_all(other->sends(&values, 4), receives(&values));
  if (std::get<1>(passed) != 10) co_return "channel";

  const auto first = co_await coro::when_any(for_ever(other), other->waits(5));
  if (first.index() != 1 || std::get<1>(first).value != 5) co_return "when_any";
  const Result<Counted> late = co_await coro::with_deadline(1us, for_ever(other));
  if (late || late.error() != Error::deadline) co_return "with_deadline";
  const Result<Counted> stopped = co_await coro::until_stop(other->fails());
  if (stopped || stopped.error() != Error::ended) co_return "until_stop";

#ifdef __cpp_exceptions
  if (other->has_exceptions) {
    const int soon = co_await catches(other, true);
    const int later = co_await catches(other, false);
    if (soon != 7 || later != 7) co_return "exceptions";
  }
#endif
  co_return co_await other->talks(loop);
}
Task<void> in_a_scope(int* done) {
  co_await coro::next_turn();
  ++*done;
}
Task<Result<int>> joins(Loop* loop, const Part* other) {
  int done = 0;
  coro::Scope scope(*loop);
  scope.spawn(in_a_scope(&done));
  co_await coro::or_return(scope.join());
  const Counted one = co_await other->waits(1);
  co_return done + one.value;
}

std::string works_with(Loop& loop, const Part& other) {
  if (coro::run(loop, joins(&loop, &other)) != 2) return "joins";
  Values values(1);
  coro::run(loop, other.sends(&values, 1));
  return coro::run(loop, work(&loop, &other));
}

#ifdef __cpp_exceptions
constexpr bool kHasExceptions = true;
#else
constexpr bool kHasExceptions = false;
#endif
#define NAME_OF(x) #x
#define TEXT(x) NAME_OF(x)

}  // namespace

extern const Part PART;
const Part PART = {
    TEXT(PART),
    kHasExceptions,
    {sizeof(coro::TaskPromise<Counted>), sizeof(coro::GeneratorPromise<Counted>),
     sizeof(coro::Scope), sizeof(coro::Stream), sizeof(Task<int>::Awaiter), sizeof(coro::Sleep),
     sizeof(Values), sizeof(coro::Stream::ReadFramed<Delimiter>)},
    waits,
    fails,
    throws,
    counts,
    sends,
    talks,
    works_with,
};

}  // namespace mixed
