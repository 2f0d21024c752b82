#include "spate/function.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace spate {
namespace {

using Plain = Function<void()>;
static_assert(sizeof(Plain) == 5 * sizeof(void*));
static_assert(sizeof(Function<int(std::string) const>) == sizeof(Plain));
#ifdef __cpp_lib_move_only_function  // It may replace this type without a change of any size.
static_assert(sizeof(std::move_only_function<void()>) == sizeof(Plain));
#endif
static_assert(std::is_nothrow_default_constructible_v<Plain>);
static_assert(std::is_nothrow_move_constructible_v<Plain>);
static_assert(std::is_nothrow_move_assignable_v<Plain>);
static_assert(std::is_nothrow_swappable_v<Plain>);
static_assert(std::is_nothrow_constructible_v<Plain, std::nullptr_t>);
static_assert(std::is_nothrow_constructible_v<Plain, void (*)()>);
static_assert(!std::is_copy_constructible_v<Plain>);
static_assert(!std::is_copy_assignable_v<Plain>);

// The signature decides which callables are accepted.
static_assert(std::is_constructible_v<Function<void(int)>, int (*)(long)>);
static_assert(!std::is_constructible_v<Function<void(int)>, void (*)(int*)>);
static_assert(!std::is_constructible_v<Function<std::string()>, int (*)()>);
static_assert(!std::is_constructible_v<Plain, int>);
struct Mutable {
  void operator()() {}
};
static_assert(std::is_constructible_v<Plain, Mutable>);
static_assert(!std::is_constructible_v<Function<void() const>, Mutable>);
static_assert(std::is_constructible_v<Plain, Function<void() const>>);
static_assert(!std::is_constructible_v<Function<void() const>, Plain>);

// Only a call and the construction from a callable need complete types.
struct Later;
struct Holder {
  Function<Later(Later, Later&, const Later*)> function{};
};
static_assert(std::is_nothrow_move_constructible_v<Holder>);
struct Later {
  int value = 0;
};

TEST(Function, AcceptsTypesThatAreCompletedLater) {
  Holder holder{[](Later one, Later& other, const Later* third) {
    return Later{one.value + other.value + third->value};
  }};
  Later two{2};
  const Later three{3};
  EXPECT_EQ(holder.function(Later{1}, two, &three).value, 6);
}

// Counts the instances.
class Counted {
 public:
  Counted() { ++live; }
  Counted(const Counted&) noexcept { ++live; }
  Counted(Counted&&) noexcept { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }

  inline static int live = 0;
};

struct Small {
  explicit Small(int value) : added(value) {}
  int operator()(int number) { return added += number; }
  int added;
  Counted counted{};
};
struct Large : Small {
  using Small::Small;
  std::array<std::byte, 100> more{};
};
template <std::size_t alignment>
struct alignas(alignment) Aligned : Small {
  using Small::Small;
  int operator()(int number) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % alignment, 0u);
    return Small::operator()(number);
  }
};
using TwoWordsAligned = Aligned<2 * sizeof(void*)>;
using LineAligned = Aligned<64>;
struct MoveMayThrow : Small {
  using Small::Small;
  MoveMayThrow(MoveMayThrow&& other) noexcept(false) : Small(other) {}
};
struct OneWordTooLarge : Small {
  using Small::Small;
  std::array<void*, 3> more{};
};

template <class F>
class FunctionOf : public ::testing::Test {
 protected:
  using Adding = Function<int(int)>;
  ~FunctionOf() override { EXPECT_EQ(Counted::live, 0); }

  static Adding make(int value) { return F(value); }
};
class Names {
 public:
  template <class F>
  static std::string GetName(int) {
    if (std::is_same_v<F, Small>) return "Small";
    if (std::is_same_v<F, Large>) return "Large";
    if (std::is_same_v<F, TwoWordsAligned>) return "TwoWordsAligned";
    if (std::is_same_v<F, LineAligned>) return "LineAligned";
    return std::is_same_v<F, MoveMayThrow> ? "MoveMayThrow" : "OneWordTooLarge";
  }
};
using Callables =
    ::testing::Types<Small, Large, TwoWordsAligned, LineAligned, MoveMayThrow, OneWordTooLarge>;
TYPED_TEST_SUITE(FunctionOf, Callables, Names);

TYPED_TEST(FunctionOf, CallsOneCallableWithItsState) {
  std::array functions{this->make(10), this->make(20)};  // Both cannot be aligned to two words.
  EXPECT_EQ(Counted::live, 2);
  EXPECT_EQ(functions[0](1), 11);
  EXPECT_EQ(functions[0](2), 13);
  EXPECT_EQ(functions[1](1), 21);
}

TYPED_TEST(FunctionOf, IsEmptyAfterMove) {
  auto from = this->make(10);
  from(1);
  auto to = std::move(from);
  EXPECT_EQ(Counted::live, 1);
  EXPECT_FALSE(from);
  EXPECT_TRUE(from == nullptr);
  EXPECT_TRUE(to);
  EXPECT_TRUE(to != nullptr);
  EXPECT_EQ(to(1), 12);
}

TYPED_TEST(FunctionOf, ReplacesCallableByAssignment) {
  auto function = this->make(10);
  function = this->make(20);
  EXPECT_EQ(Counted::live, 1);
  EXPECT_EQ(function(1), 21);
  function = TypeParam(30);
  EXPECT_EQ(Counted::live, 1);
  EXPECT_EQ(function(1), 31);
  function = [](int number) { return -number; };
  EXPECT_EQ(Counted::live, 0);
  EXPECT_EQ(function(1), -1);
  function = TypeParam(40);
  EXPECT_EQ(function(1), 41);
}

TYPED_TEST(FunctionOf, IsEmptyAfterAssignmentOfNothing) {
  auto function = this->make(10);
  function = nullptr;
  EXPECT_FALSE(function);
  EXPECT_EQ(Counted::live, 0);
  function = this->make(10);
  function = {};
  EXPECT_FALSE(function);
  function = this->make(10);
  function = typename TestFixture::Adding();
  EXPECT_FALSE(function);
  function = nullptr;
  EXPECT_FALSE(function);
}

TYPED_TEST(FunctionOf, KeepsCallableWhenMovedToItself) {
  auto function = this->make(10);
  auto& same = function;
  function = std::move(same);
  EXPECT_EQ(Counted::live, 1);
  EXPECT_EQ(function(1), 11);
  function.swap(same);
  EXPECT_EQ(Counted::live, 1);
  EXPECT_EQ(function(1), 12);
}

TYPED_TEST(FunctionOf, SwapsWithAnyOther) {
  auto one = this->make(10);
  auto other = this->make(20);
  one.swap(other);
  EXPECT_EQ(one(0), 20);
  EXPECT_EQ(other(0), 10);
  typename TestFixture::Adding empty;
  swap(one, empty);
  EXPECT_FALSE(one);
  EXPECT_EQ(empty(0), 20);
  typename TestFixture::Adding bytes = [](int number) { return number; };
  swap(bytes, empty);
  EXPECT_EQ(bytes(0), 20);
  EXPECT_EQ(empty(7), 7);
  EXPECT_EQ(Counted::live, 2);
}

TYPED_TEST(FunctionOf, MovesWithinVector) {
  std::vector<typename TestFixture::Adding> functions;
  for (int i = 0; i < 20; ++i) functions.push_back(this->make(i));
  EXPECT_EQ(Counted::live, 20);
  functions.erase(functions.begin());
  for (int i = 1; i < 20; ++i) EXPECT_EQ(functions[static_cast<std::size_t>(i - 1)](0), i);
}

TEST(Function, MovesCallableOfThreeWordsAsBytes) {
  int sum = 0;
  const std::array<int, 2> numbers{1, 2};
  Plain add = [&sum, &numbers, factor = 10L] {
    for (const int number : numbers) sum += number * static_cast<int>(factor);
  };
  Plain moved = std::move(add);
  EXPECT_FALSE(add);
  auto& same = moved;
  moved = std::move(same);
  Plain assigned;
  assigned = std::move(moved);
  EXPECT_FALSE(moved);
  assigned();
  EXPECT_EQ(sum, 30);
}

TEST(Function, IsEmptyWhenMadeFromNull) {
  EXPECT_FALSE(Plain());
  EXPECT_FALSE(Plain(nullptr));
  EXPECT_FALSE(Plain(static_cast<void (*)()>(nullptr)));
  EXPECT_FALSE(Function<int(Small&)>(static_cast<int Small::*>(nullptr)));
  EXPECT_FALSE((Function<int(Small&, int)>(static_cast<int (Small::*)(int)>(nullptr))));
  EXPECT_FALSE(Plain(Function<void() const>()));
  EXPECT_FALSE(Plain(Function<int()>()));
  EXPECT_FALSE(Plain(std::function<void()>()));
#ifdef __cpp_lib_move_only_function
  EXPECT_FALSE(Plain(std::move_only_function<void()>()));
#endif
}

TEST(Function, CallsCallableOfAnotherWrapper) {
  int calls = 0;
  Plain plain = Function<int() const>([&calls] { return ++calls; });
  plain();
  plain = std::function<void()>([&calls] { calls += 10; });
  plain();
  EXPECT_EQ(calls, 11);
}

int twice(int number) { return 2 * number; }

TEST(Function, CallsFunctionsAndMembers) {
  Function<int(int)> function = twice;
  EXPECT_EQ(function(2), 4);
  function = &twice;
  EXPECT_EQ(function(3), 6);

  Large object(10);
  EXPECT_EQ((Function<int(Large&, int)>(&Small::operator())(object, 1)), 11);
  EXPECT_EQ((Function<int(Large*, int)>(&Small::operator())(&object, 1)), 12);
  const auto owned = std::make_shared<Small>(20);
  EXPECT_EQ((Function<int(std::shared_ptr<Small>, int)>(&Small::operator())(owned, 1)), 21);
  EXPECT_EQ((Function<int(std::reference_wrapper<Large>)>(&Small::added)(object)), 12);
  EXPECT_EQ(Function<int&(Large&)>(&Small::added)(object) += 5, 17);
  EXPECT_EQ(object.added, 17);
}

TEST(Function, PassesReferencesAndMoves) {
  const Function<std::unique_ptr<int>(std::unique_ptr<int>, std::string&, std::string&&) const>
      function = [](std::unique_ptr<int> number, std::string& text, std::string&& moved) {
        text += std::move(moved);
        ++*number;
        return number;
      };
  std::string text = "a";
  EXPECT_EQ(*function(std::make_unique<int>(1), text, "b"), 2);
  EXPECT_EQ(text, "ab");
}

TEST(Function, MovesEachArgumentAtMostTwice) {
  struct Argument {
    Argument() = default;
    Argument(Argument&& other) noexcept : moves(other.moves + 1) {}
    int moves = 0;
    std::array<std::byte, 64> bytes{};
  };
  Function<int(Argument)> by_value = [](Argument argument) { return argument.moves; };
  EXPECT_EQ(by_value(Argument()), 1);
  Function<int(Argument&&)> by_reference = [](Argument&& argument) { return argument.moves; };
  EXPECT_EQ(by_reference(Argument()), 0);
}

TEST(Function, CallsConstantCallableByConstantSignature) {
  struct Both {
    int operator()() { return 1; }
    int operator()() const { return 2; }
  };
  EXPECT_EQ(Function<int()>(Both())(), 1);
  const Function<int() const> constant = Both();
  EXPECT_EQ(constant(), 2);
}

TEST(Function, DropsResultOfVoidSignature) {
  Function<void(int)> function = twice;
  function(1);
  static_assert(std::is_void_v<decltype(function(1))>);
}

// Calls a function when it is destroyed.
template <class End>
class AtEnd {
 public:
  explicit AtEnd(End end) : end_(std::move(end)) {}
  AtEnd(AtEnd&& other) noexcept
      : end_(other.end_), is_armed_(std::exchange(other.is_armed_, false)) {}
  ~AtEnd() {
    if (is_armed_) end_();
  }
  void operator()() const {}

 private:
  End end_;
  bool is_armed_ = true;
};

TEST(Function, HasNextCallableWhenOldOneIsDestroyed) {
  int calls = 0;
  Plain function;
  function = AtEnd([&function] { function(); });
  function = [&calls] { ++calls; };
  EXPECT_EQ(calls, 1);
  function = AtEnd([&function] { function(); });
  function = Plain([&calls] { calls += 10; });
  EXPECT_EQ(calls, 11);
  bool was_empty = false;
  function = AtEnd([&function, &was_empty] { was_empty = !function; });
  function = nullptr;
  EXPECT_TRUE(was_empty);
}

TEST(Function, MayBeAssignedInsideItsCall) {
  std::vector<int> calls;
  Plain function;
  function = [&calls, &function, owned = std::make_unique<int>(1)] {
    std::vector<int>& kept = calls;
    kept.push_back(*owned);
    function = [&kept] { kept.push_back(2); };
    kept.push_back(3);
  };
  function();
  function();
  EXPECT_EQ(calls, (std::vector{1, 3, 2}));
}

// A list of functions, each of which owns the next.
TEST(Function, MayBeReplacedByOneThatItOwns) {
  struct Link {
    Plain next;
    Counted counted{};
    void operator()() const {}
  };
  int calls = 0;
  auto owned = std::make_unique<Link>();
  Link* link = owned.get();
  link->next = [&calls] { ++calls; };
  Plain function = [owned = std::move(owned)] { (*owned)(); };
  function = std::move(link->next);
  EXPECT_EQ(Counted::live, 0);
  function();
  EXPECT_EQ(calls, 1);
}

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
TEST(FunctionDeathTest, CallOfEmptyOneAborts) {
  ::testing::GTEST_FLAG(death_test_style) = "fast";
  Plain function;
  EXPECT_DEATH(function(), "only a Function that has a callable may be called");
  const Function<int(int) const> constant;
  EXPECT_DEATH(constant(1), "only a Function that has a callable may be called");
}
#endif

}  // namespace
}  // namespace spate
