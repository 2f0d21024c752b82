// Patterns: expressions beside a co_await, its operand, and its result.
#include <coroutine>
#include <string>
#include <utility>

#include "harness.h"

namespace patterns {
namespace {

struct Options {  // An aggregate, and not trivially destroyed.
  Counted name{6};
  int count = 1;
};
struct Plain {
  int a = 0;
  int b = 0;
};
struct Built {
  Built(Counted its_name, int its_count) : name(std::move(its_name)), count(its_count) {}
  Counted name;
  int count;
};

Gives<int> takes(Options options) { return gives(options.name.value() + options.count); }
Gives<int> takes_by_reference(const Options& options) {
  return gives(options.name.value() + options.count);
}
Gives<int> takes_plain(Plain plain) { return gives(plain.a + plain.b); }
Gives<int> takes_built(Built built) { return gives(built.name.value() + built.count); }
template <class F>
Gives<int> takes_callable(F callable) {
  return gives(callable());
}
Task<int> child_takes(Options options) {
  co_await Gate{};
  co_return options.name.value() + options.count;
}
Task<int> child_by_reference(const Counted& a) {
  co_await Gate{};
  co_return a.value();
}

// ---- arguments

Task<int> lambda_with_an_object() {
  const Counted name(7);
  const int result = co_await takes_callable([name] { return name.value(); });
  co_return result;
}
Task<int> lambda_with_a_reference() {
  const Counted name(7);
  const int result = co_await takes_callable([&name] { return name.value(); });
  co_return result;
}
Task<int> lambda_with_a_scalar() {
  int value = 6;
  ++value;
  const int result = co_await takes_callable([value] { return value; });
  co_return result;
}
Task<int> lambda_named_first() {
  const Counted name(7);
  auto callable = [name] { return name.value(); };
  const int result = co_await takes_callable(std::move(callable));
  co_return result;
}
Task<int> aggregate_by_value() {
  const int result = co_await takes({.name = Counted(6)});
  co_return result;
}
Task<int> aggregate_by_reference() {
  const int result = co_await takes_by_reference({.name = Counted(6)});
  co_return result;
}
Task<int> aggregate_with_its_type() {
  const int result = co_await takes(Options{Counted(6), 1});
  co_return result;
}
Task<int> aggregate_in_parentheses() {
  const int result = co_await takes(Options(Counted(6), 1));
  co_return result;
}
Gives<int> takes_or_makes(Options options = {.name = Counted(6)}) {
  return takes(std::move(options));
}
Task<int> aggregate_as_a_default_argument() {
  const int result = co_await takes_or_makes();
  co_return result;
}
Task<int> aggregate_of_no_more_than_braces() {
  const int result = co_await takes({});
  co_return result;
}
Options some_options() { return {.name = Counted(6)}; }
Task<int> aggregate_of_a_function() {
  const int result = co_await takes(some_options());
  co_return result;
}
Task<int> aggregate_to_a_child() {
  const int result = co_await child_takes({.name = Counted(6)});
  co_return result;
}
Task<int> aggregate_named_first() {
  Options options{.name = Counted(6)};
  const int result = co_await takes(std::move(options));
  co_return result;
}
Task<int> plain_aggregate() {
  const int result = co_await takes_plain({.a = 3, .b = 4});
  co_return result;
}
Task<int> argument_with_a_constructor() {
  const int result = co_await takes_built(Built(Counted(6), 1));
  co_return result;
}
Task<int> parameter_by_value() {
  const int result = co_await child_by_value(Counted(6));
  co_return result;
}
Task<int> temporary_bound_to_a_reference() {
  const int result = co_await child_by_reference(Counted(7));
  co_return result;
}

// ---- operands

struct AggregateAwaiter {
  Counted name;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting = handle; }
  int await_resume() { return name.value(); }
};
Task<int> awaits_an_aggregate() {
  const int result = co_await AggregateAwaiter{Counted(7)};
  co_return result;
}
Task<int> awaits_what_has_a_constructor() {
  const Counted result = co_await Gives<Counted>(Counted(7));
  co_return result.value();
}
struct Pinned {
  explicit Pinned(int value) : it(value) {}
  Pinned(Pinned&&) = delete;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting = handle; }
  int await_resume() { return it.value(); }
  Counted it;
};
Pinned pinned(int value) { return Pinned(value); }
Task<int> awaiter_that_cannot_move() {
  const int result = co_await pinned(7);
  co_return result;
}
struct HasOperator {
  explicit HasOperator(int value) : it(value) {}
  Pinned operator co_await() && { return Pinned(it.value()); }
  Counted it;
};
Task<int> member_operator_co_await() {
  const int result = co_await HasOperator(7);
  co_return result;
}
struct HasFreeOperator {
  explicit HasFreeOperator(int value) : it(value) {}
  Counted it;
};
Pinned operator co_await(HasFreeOperator&& awaited) { return Pinned(awaited.it.value()); }
Task<int> free_operator_co_await() {
  const int result = co_await HasFreeOperator(7);
  co_return result;
}
Task<int> nested_awaits() {
  const int result = co_await gives(co_await gives(co_await gives(7)));
  co_return result;
}

// ---- other operands of the expression

Task<int> two_awaits_in_one_call() {
  const int result = sum(co_await gives_counted(3), co_await gives_counted(4));
  co_return result;
}
Task<int> object_beside_an_await() {
  const int result = sum(Counted(3), co_await gives_counted(4));
  co_return result;
}
Task<int> string_beside_an_await() {
  const std::string text = std::string(100, 'x') + std::to_string(co_await gives(1));
  co_return text.size() == 101 ? 7 : 0;
}
Task<int> array_of_objects() {
  const Counted both[] = {Counted(3), co_await gives_counted(4)};
  co_return sum(both[0], both[1]);
}
Task<int> array_of_scalars() {
  const int both[] = {3, co_await gives(4)};
  co_return both[0] + both[1];
}
Task<int> comma() {
  const Counted local(7);
  co_await Gate{}, co_await Gate{};
  co_return local.value();
}

// ---- results

Task<int> capture_of_what_was_awaited() {
  const auto callable = [it = co_await gives_counted(7)] { return it.value(); };
  co_return callable();
}
Task<int> captured_after_it_has_a_name() {
  const Counted it = co_await gives_counted(7);
  const auto callable = [it] { return it.value(); };
  co_return callable();
}
Task<Counted> yields_one_of_two() {
  const bool first = rounds == 0;
  co_yield first ? Counted(7) : Counted(0);
  co_await Gate{};
  co_return Counted(7);
}
Task<int> yields_a_conditional() {
  Task<Counted> source = yields_one_of_two();
  source.start();  // To the co_yield.
  source.start();  // To the gate.
  co_await Gate{};
  co_return 7;
}
Task<std::pair<Counted, Counted>> a_pair() {
  co_await Gate{};
  co_return std::pair(Counted(3), Counted(4));
}
Task<int> structured_binding() {
  const auto [a, b] = co_await a_pair();
  co_await Gate{};
  co_return a.value() + b.value();
}
Task<int> returns_an_await() {
  const Counted local(1);
  co_return co_await gives(7);
}
Task<Options> options_child() {
  const Counted local(1);
  co_await Gate{};
  co_return {};
}
Task<int> returns_braces() {
  const Options options = co_await options_child();
  co_return options.name.value() + options.count;
}
Task<int> await_as_a_constructors_argument() {
  const Counted result(co_await gives(7));
  co_return result.value();
}
Task<int> object_of_a_child() {
  const Counted result = co_await counted_child(7);
  co_return result.value();
}
Task<int> member_of_a_result() {
  const int result = (co_await gives_counted(7)).value();
  co_return result;
}
Task<int> discards_a_result() {
  co_await counted_child(1);
  co_return 7;
}
Task<int> assigns_to_a_member() {
  struct {
    Counted it{0};
  } local;
  local.it = co_await counted_child(7);
  co_return local.it.value();
}
Task<int> compound_assignment() {
  int total = 3;
  total += co_await gives(4);
  co_return total;
}

// ---- kinds of coroutines

template <class... T>
Task<int> variadic(T... values) {
  const Counted local(1);
  co_await Gate{};
  co_return (values.value() + ...);
}
Task<int> parameter_pack() {
  const int result = co_await variadic(Counted(3), Counted(4));
  co_return result;
}
Task<int> lambda_coroutine_with_parameters() {
  const auto add = [](Counted a, int b) -> Task<int> {
    co_await Gate{};
    co_return a.value() + b;
  };
  const int result = co_await add(Counted(3), 4);
  co_return result;
}
struct HasMethod {
  Task<int> method(Counted other) const {
    co_await Gate{};
    co_return sum(it, other);
  }
  Counted it;
};
Task<int> method_coroutine() {
  const HasMethod object{Counted(3)};
  const int result = co_await object.method(Counted(4));
  co_return result;
}
Task<int> adds(Counted a = Counted(3), Counted b = Counted(4)) {
  co_await Gate{};
  co_return sum(a, b);
}
Task<int> default_arguments() { return adds(); }

constexpr Pattern kPatterns[] = {
    PATTERN(lambda_with_an_object, Outcome::twice),  // GCC 99576, 100611, 101976.
    PATTERN(lambda_with_a_reference),
    PATTERN(lambda_with_a_scalar),
    PATTERN(lambda_named_first),
    PATTERN(aggregate_by_value, Outcome::twice),
    PATTERN(aggregate_by_reference, Outcome::twice),
    PATTERN(aggregate_with_its_type, Outcome::twice),
    PATTERN(aggregate_in_parentheses, Outcome::twice),
    PATTERN(aggregate_as_a_default_argument, Outcome::twice),
    PATTERN(aggregate_of_no_more_than_braces, Outcome::twice),
    PATTERN(aggregate_of_a_function),
    PATTERN(aggregate_to_a_child, Outcome::twice),
    PATTERN(aggregate_named_first),
    PATTERN(plain_aggregate),
    PATTERN(argument_with_a_constructor),
    PATTERN(parameter_by_value),
    PATTERN(temporary_bound_to_a_reference),
    PATTERN(awaits_an_aggregate, Outcome::twice),
    PATTERN(awaits_what_has_a_constructor),
    PATTERN(awaiter_that_cannot_move),
    PATTERN(member_operator_co_await),
    PATTERN(free_operator_co_await),
    PATTERN(nested_awaits),
    PATTERN(two_awaits_in_one_call),
    PATTERN(object_beside_an_await),
    PATTERN(string_beside_an_await),
    PATTERN(array_of_objects, Outcome::twice),
    PATTERN(array_of_scalars),
    PATTERN(comma),
    PATTERN(capture_of_what_was_awaited, Outcome::twice),
    PATTERN(captured_after_it_has_a_name),
    PATTERN(yields_a_conditional, Outcome::twice),  // GCC 109283.
    PATTERN(structured_binding),
    PATTERN(returns_an_await),
    PATTERN(returns_braces),
    PATTERN(await_as_a_constructors_argument),
    PATTERN(object_of_a_child),
    PATTERN(member_of_a_result),
    PATTERN(discards_a_result),
    PATTERN(assigns_to_a_member),
    PATTERN(compound_assignment),
    PATTERN(parameter_pack),
    PATTERN(lambda_coroutine_with_parameters),
    PATTERN(method_coroutine),
    PATTERN(default_arguments),
};

}  // namespace

const std::span<const Pattern> kExpressions = kPatterns;

}  // namespace patterns
