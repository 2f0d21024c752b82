// The moments at which an awaited operation can be destroyed, for the destroy matrices.
//
// A Field has the objects that the operations of one test wait for: `loop`, `clock` (which stands
// still), `live` and `resumed` (counters of tasks), `scope` and `others` (for tasks), and turns().
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/error.h"
#include "spate/time.h"
#include "spate/timer.h"
#include "tests/coro/promised.h"

namespace spate::testing::destroying {

inline constexpr Nanos kMillisecond{1'000'000};

// An operation that waits, and a function that completes it.
template <class Field>
struct Operation {
  const char* name;
  coro::Task<void> (*wait)(Field* field);
  void (*complete)(Field& field);
  bool can_be_repeated = true;  // Its object serves the next task.
};
template <class Field>
void PrintTo(const Operation<Field>& operation, std::ostream* out) {
  *out << operation.name;
}

template <class Field>
void before_it_starts(Field& field, const Operation<Field>& operation) {
  const coro::Task<void> task = operation.wait(&field);
  EXPECT_TRUE(task);
}

template <class Field>
void spawn(Field& field, coro::Task<void> task) {
  EXPECT_TRUE(field.scope->spawn(std::move(task)));
  EXPECT_GT(field.live, 0);
}

template <class Field>
void while_it_waits(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  field.scope.reset();
}

template <class Field>
void when_it_is_ready(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  operation.complete(field);
  field.scope->cancel();
}

// Not templates: g++ warns of frames of a type without linkage.
inline coro::Task<void> in_a_turn(std::function<void()> what) {
  co_await coro::next_turn();
  what();
}
inline coro::Task<void> cancelled_by(std::function<void()> what) {
  co_await in_a_turn(std::move(what));
  co_await coro::next_turn();
  ADD_FAILURE() << "resumed";
}
inline coro::Task<void> both(coro::Task<void> one, coro::Task<void> other) {
  co_await coro::when_all(std::move(one), std::move(other));
  ADD_FAILURE() << "resumed";
}
template <class Field>
void by_a_sibling(Field& field, const Operation<Field>& operation) {
  spawn(field, both(operation.wait(&field), cancelled_by([&field] { field.scope->cancel(); })));
  field.turns(3);
}

template <class Field>
void by_anothers_continuation(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  coro::Scope another(*field.loop);
  another.spawn(in_a_turn([&field] { field.scope.reset(); }));
  field.turns(3);
  EXPECT_TRUE(another.empty());
}

template <class Field>
void when_it_was_promised(Field& field, const Operation<Field>& operation) {
  cancel_when_promised(*field.loop, operation.wait(&field), [&] { operation.complete(field); });
}

template <class Field>
void by_another_when_it_is_ready(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  coro::Scope another(*field.loop);
  another.spawn(in_a_turn([&] {
    operation.complete(field);
    field.scope.reset();
  }));
  field.turns(3);
  EXPECT_TRUE(another.empty());
}

inline coro::Task<void> for_a_millisecond(coro::Task<void> task) {
  const Result<void> result = co_await coro::with_deadline(kMillisecond, std::move(task));
  EXPECT_EQ(result.error(), Error::deadline);
}
template <class Field>
void by_a_deadline(Field& field, const Operation<Field>& operation) {
  spawn(field, for_a_millisecond(operation.wait(&field)));
  field.clock.advance(kMillisecond);
  field.turns(3);
  EXPECT_TRUE(field.scope->empty());
}

inline coro::Task<void> a_millisecond() { co_await coro::sleep(kMillisecond); }
inline coro::Task<void> loses(coro::Task<void> task) {
  const auto first = co_await coro::when_any(std::move(task), a_millisecond());
  EXPECT_EQ(first.index(), 1u);
}
template <class Field>
void as_a_loser(Field& field, const Operation<Field>& operation) {
  spawn(field, loses(operation.wait(&field)));
  field.clock.advance(kMillisecond);
  field.turns(3);
  EXPECT_TRUE(field.scope->empty());
}

template <class Field>
void by_a_callback(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  Timer timer(*field.loop, [&field] { field.scope.reset(); });
  EXPECT_TRUE(timer.start(Nanos{0}));
  field.turns(3);
}

template <class Field>
void by_the_end_of_the_loop(Field& field, const Operation<Field>& operation) {
  spawn(field, operation.wait(&field));
  field.loop.reset();
}

template <class Field>
struct Moment {
  const char* name;
  void (*destroy)(Field& field, const Operation<Field>& operation);
};
template <class Field>
void PrintTo(const Moment<Field>& moment, std::ostream* out) {
  *out << moment.name;
}

template <class Field>
const Moment<Field> kMoments[] = {
    {"before_it_starts", before_it_starts<Field>},
    {"while_it_waits", while_it_waits<Field>},
    {"when_it_is_ready", when_it_is_ready<Field>},
    {"when_it_was_promised", when_it_was_promised<Field>},
    {"by_a_sibling", by_a_sibling<Field>},
    {"by_anothers_continuation", by_anothers_continuation<Field>},
    {"by_another_when_it_is_ready", by_another_when_it_is_ready<Field>},
    {"by_a_deadline", by_a_deadline<Field>},
    {"as_a_loser", as_a_loser<Field>},
    {"by_a_callback", by_a_callback<Field>},
    {"by_the_end_of_the_loop", by_the_end_of_the_loop<Field>},
};

template <class Field>
void check(Field& field, const Operation<Field>& operation, const Moment<Field>& moment) {
  moment.destroy(field, operation);
  EXPECT_EQ(field.resumed, 0);
  if (field.loop == nullptr) {
    EXPECT_EQ(field.live, 0);
    return;
  }
  field.turns(3);
  EXPECT_EQ(field.resumed, 0);
  field.others.cancel();
  EXPECT_EQ(field.live, 0);

  if (!operation.can_be_repeated) return;
  coro::Scope next(*field.loop);
  next.spawn(operation.wait(&field));
  operation.complete(field);
  for (int i = 0; i < 200 && field.resumed == 0; ++i) field.loop->run(Run::once);
  EXPECT_EQ(field.resumed, 1);
}

}  // namespace spate::testing::destroying
