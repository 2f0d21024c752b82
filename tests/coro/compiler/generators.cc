// Patterns: the values of a generator, destroyed while it waits, and after it has yielded.
#include <coroutine>
#include <optional>
#include <utility>

#include "harness.h"

namespace patterns {
namespace {

// A generator: yields values to its caller.
template <class T>
class Source {
 public:
  struct promise_type {
    struct ToAsker {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        const std::coroutine_handle<> asker = std::exchange(self.promise().asker, {});
        self.promise().has_answered = true;
        if (asker) asker.resume();
      }
      void await_resume() noexcept {}
    };

    Source get_return_object() {
      return Source(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    ToAsker final_suspend() noexcept { return {}; }
    void unhandled_exception() {}
    void return_void() {}
    template <class U>
    ToAsker yield_value(U&& its_value) {
      value.emplace(std::forward<U>(its_value));
      return {};
    }

    std::optional<T> value;
    std::coroutine_handle<> asker;
    bool has_answered = false;
  };
  struct Next {
    explicit Next(promise_type& its_promise) : promise(its_promise) {}
    Next(const Next&) = delete;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> asker) {
      promise.has_answered = false;
      std::coroutine_handle<promise_type>::from_promise(promise).resume();
      if (promise.has_answered) return false;
      promise.asker = asker;
      return true;
    }
    std::optional<T> await_resume() { return std::exchange(promise.value, {}); }
    promise_type& promise;
  };

  Source(const Source&) = delete;
  ~Source() { handle_.destroy(); }
  Next next() { return Next(handle_.promise()); }

 private:
  explicit Source(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// Waits between two values.
template <class T>
Task<int> sum_of(Source<T> (*make)()) {
  Source<T> source = make();
  int result = 0;
  for (;;) {
    const std::optional<T> value = co_await source.next();
    if (!value) break;
    result += value->value();
    co_await Gate{};
  }
  co_return result;
}

struct Line {  // An aggregate, and not trivially destroyed.
  int value() const { return text.value(); }
  Counted text;
};

Source<Counted> objects() {
  co_yield Counted(3);
  co_await Gate{};
  co_yield Counted(4);
}
Source<Counted> names() {
  const Counted name(3);
  co_yield name;
  Counted other(4);
  co_yield std::move(other);
}
Source<Counted> awaited() {
  const Counted first = co_await gives_counted(3);
  co_yield first;
  co_yield co_await gives_counted(4);
}
Source<Counted> without_locals() {
  co_await Gate{};
  for (;;) {
    co_yield Counted(7);
    co_return;
  }
}
Source<Line> aggregates() { co_yield Line{Counted(7)}; }
Source<Line> named_aggregates() {
  Line line{Counted(7)};
  co_yield std::move(line);
}
Source<Counted> of_a_parameter(Counted value) {
  co_yield value;
  co_await Gate{};
}
Source<Counted> of_another() {
  Source<Counted> source = objects();
  for (;;) {
    std::optional<Counted> value = co_await source.next();
    if (!value) break;
    co_yield *std::move(value);
  }
}

Task<int> yields_objects() { return sum_of(objects); }
Task<int> yields_names() { return sum_of(names); }
Task<int> yields_what_was_awaited() { return sum_of(awaited); }
Task<int> yields_in_a_loop_without_locals() { return sum_of(without_locals); }
Task<int> yields_an_aggregate() { return sum_of(aggregates); }
Task<int> yields_a_named_aggregate() { return sum_of(named_aggregates); }
Task<int> yields_a_parameter() {
  return sum_of<Counted>([] { return of_a_parameter(Counted(7)); });
}
Task<int> yields_what_another_yields() { return sum_of(of_another); }

constexpr Pattern kPatterns[] = {
    PATTERN(yields_objects),
    PATTERN(yields_names),
    PATTERN(yields_what_was_awaited),
    PATTERN(yields_in_a_loop_without_locals),
    PATTERN(yields_an_aggregate, Outcome::twice),
    PATTERN(yields_a_named_aggregate),
    PATTERN(yields_a_parameter),
    PATTERN(yields_what_another_yields),
};

}  // namespace

const std::span<const Pattern> kGenerators = kPatterns;

}  // namespace patterns
