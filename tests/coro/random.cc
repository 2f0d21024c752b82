// A random program of tasks that do all that the headers allow: wait, await and fail, spawn, cancel
// and destroy scopes, their own included, and run the loop. The model tracks whether each coroutine
// runs, waits or is destroyed: only waiting ones are resumed, none is destroyed while it runs, and
// in the end none is left.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "spate/coro/channel.h"
#include "spate/coro/generator.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "spate/http/coro.h"
#include "spate/http/server.h"
#include "tests/coro/crowd.h"
#include "tests/coro/life.h"
#include "tests/coro/mark.h"
#include "tests/support/random.h"
#include "tests/support/scripted.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

// Acts in its destructor: a local of a task, a value in a channel, a capture of a function. After
// a move it does nothing.
class LastAct {
 public:
  explicit LastAct(std::function<void()> act = {}) : act_(std::move(act)) {}
  LastAct(LastAct&& other) noexcept : act_(std::exchange(other.act_, {})) {}
  LastAct& operator=(LastAct&& other) noexcept {
    std::swap(act_, other.act_);
    return *this;
  }
  ~LastAct() {
    if (act_) act_();
  }

 private:
  std::function<void()> act_;
};

// A value of a channel or a mailbox.
struct Letter {
  int value;
  LastAct last;
};

constexpr int kDeepest = 4;  // Depth of children.
constexpr int kMostLive = 60;
constexpr int kRoom = 3;  // In the mailbox.

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {
    http::ClientOptions options;
    options.open = [this](std::string_view, std::uint16_t) { return connect(); };
    client_ = must(http::Client::create(loop(), std::move(options)));
    serve();
  }
  ~Program() {
    is_settling_ = true;
    crowd_.end();
    EXPECT_EQ(lives_.live, 0) << "coroutines are left";
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act(0);
      EXPECT_FALSE(loop().run(Run::no_wait));
      scripted_.clock.advance(Nanos{random_.span(2'000'000)});
    }
  }
  // All tasks end if they are left alone.
  void settle() {
    is_settling_ = true;
    bell_.set();
    for (int i = 0; i < 10'000 && lives_.live > 0; ++i) {
      if (channel_.try_receive()) ++received_;
      if (channel_.try_send(letter(0))) ++sent_;
      post();
      EXPECT_FALSE(loop().run(Run::no_wait));
      scripted_.clock.advance(1ms);
    }
    EXPECT_EQ(lives_.live, 0) << "somebody is not woken";
    EXPECT_EQ(sent_, received_ + std::ssize(channel_)) << "lost, or doubled";
    while (mailbox_.post(letter(0))) ++posted_;
    EXPECT_EQ(posted_, fetched_ + kRoom) << "lost, or doubled";
    EXPECT_EQ(seats_.available(), 2u);
    EXPECT_TRUE(crowd_.is_empty());
  }
  // Returns true if the program has exercised each feature often enough.
  bool has_lived() const {
    return lives_.resumed > 100 && lives_.ended > 50 && lives_.left > lives_.ended &&
           crowd_.failed() > 0 && stopped_ > 0 && answered_ > 0 && last_acts_ > 20;
  }

 private:
  Loop& loop() { return *scripted_.loop; }
  Nanos any_time() { return Nanos{random_.span(3'000'000)}; }

  // ---- actions that are allowed at any time

  void act(int depth) {
    if (is_settling_) return;
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return spawn_one();
      case 5:
      case 6:
      case 7:
        if (random_.one_in(4)) crowd_.disturb_any();
        return;
      case 8:
        if (depth > 0) crowd_.run_loop_inside();
        return;
      case 9:
        if (bell_.is_set()) return bell_.reset();
        return bell_.set();
      case 10:
        return post();
      default:
        if (random_.one_in(8)) serve();
        return;
    }
  }
  // Replaces the server; the requests of the old one end.
  void serve() {
    server_ = must(http::Server::create(loop(), [this](http::Exchange exchange) {
      crowd_.any().spawn(answers(std::move(exchange)));
    }));
  }
  Result<Stream> connect() {
    if (random_.one_in(8)) {
      return std::unexpected(std::make_error_code(std::errc::connection_refused));
    }
    auto [mine, theirs] = must(Stream::memory_pair(loop()));
    server_.add(std::move(theirs));
    return std::move(mine);
  }
  void post() {
    if (mailbox_.post(letter(0))) ++posted_;
  }
  // Half of those that are made act.
  LastAct last_act(int depth) {
    if (is_settling_ || random_.one_in(2)) return LastAct();
    return LastAct([this, depth] {
      if (is_settling_ || last_depth_ == kDeepest) return;
      ++last_acts_;
      ++last_depth_;
      act(depth + 1);
      --last_depth_;
    });
  }
  Letter letter(int depth) { return {7, last_act(depth)}; }
  void spawn_one() {
    if (lives_.live >= kMostLive) return;
    if (random_.one_in(2)) {
      crowd_.any().spawn(plain(0));
    } else {
      crowd_.any().spawn(failing(0));
    }
  }

  // ---- tasks: each waits a few times, and acts in between

  Task<void> plain(int depth) {
    const LastAct first_made = last_act(depth);
    Life life(lives_);
    const LastAct last = last_act(depth);
    for (std::size_t steps = 1 + random_.below(5); steps > 0; --steps) {
      Task<int> wait = some_wait(depth);
      life.waits();
      const int value = co_await std::move(wait);
      life.goes_on();
      EXPECT_EQ(value, 7);
      act(depth + 1);
    }
    life.ends();
  }
  Task<Result<void>> failing(int depth) {
    const LastAct first_made = last_act(depth);
    Life life(lives_);
    const LastAct last = last_act(depth);
    for (std::size_t steps = 1 + random_.below(3); steps > 0; --steps) {
      Task<Result<int>> trouble = some_trouble(depth);
      life.waits();
      const int value = co_await coro::or_return(std::move(trouble));
      life.goes_on();
      EXPECT_EQ(value, 7);
      act(depth + 1);
    }
    life.ends();
    co_return Result<void>();
  }
  Task<Result<int>> some_trouble(int depth) {
    const bool fails = random_.one_in(3);
    Life life(lives_);
    const LastAct last = last_act(depth);
    if (random_.one_in(2)) {
      Task<int> wait = some_wait(depth);
      life.waits();
      co_await std::move(wait);
      life.goes_on();
    }
    life.ends();
    if (fails) co_return std::unexpected(std::make_error_code(std::errc::io_error));
    co_return 7;
  }
  Task<int> at_once() {
    Life life(lives_);
    life.ends();
    co_return 7;
  }
  Task<int> sleeps() {
    Life life(lives_);
    const Nanos time = any_time();
    const Nanos before = loop().now();
    life.waits();
    co_await coro::sleep(time);
    life.goes_on();
    EXPECT_GE(loop().now() - before, time) << "too early";
    life.ends();
    co_return 7;
  }
  Task<int> takes_a_turn() {
    Life life(lives_);
    const std::uint64_t before = loop().iteration();
    life.waits();
    co_await coro::next_turn();
    life.goes_on();
    EXPECT_NE(loop().iteration(), before);
    life.ends();
    co_return 7;
  }
  Task<int> has_a_deadline(int depth) {
    Life life(lives_);
    const LastAct last = last_act(depth);
    const Nanos time = any_time();
    Task<int> child = some_wait(depth);
    life.waits();
    const Result<int> value = co_await coro::with_deadline(time, std::move(child));
    life.goes_on();
    EXPECT_TRUE(value ? *value == 7 : value.error() == Error::deadline);
    life.ends();
    co_return 7;
  }
  Task<int> until_it_stops(int depth) {
    Life life(lives_);
    Task<Result<int>> child = some_trouble(depth);
    life.waits();
    const Result<int> value = co_await coro::until_stop(std::move(child));
    life.goes_on();
    if (!value && value.error() == std::errc::operation_canceled) ++stopped_;
    life.ends();
    co_return 7;
  }
  // Waits for a new scope. A task must not wait for a scope that it is in, and `depth`
  // shows which those are.
  Task<int> nests(int depth) {
    Life life(lives_);
    Scope inner(loop());
    if (random_.one_in(2)) {
      inner.on_error(
          [last = last_act(depth)](std::error_code error) { EXPECT_TRUE(error); });
    }
    for (std::size_t count = random_.below(3); count > 0; --count) inner.spawn(failing(depth));
    const bool is_patient = random_.one_in(2);
    const Nanos grace = any_time();
    life.waits();
    if (is_patient) {
      const Result<void> result = co_await inner.join();
      life.goes_on();
      EXPECT_TRUE(result || result.error() == std::errc::io_error);
    } else {
      co_await inner.join(grace);
      life.goes_on();
    }
    EXPECT_TRUE(inner.empty());
    life.ends();
    co_return 7;
  }

  Task<int> waits_for_all(int depth) {
    Life life(lives_);
    if (random_.one_in(2)) {
      Task<int> one = some_wait(depth);
      Task<int> other = some_wait(depth);
      life.waits();
      const auto both = co_await coro::when_all(std::move(one), std::move(other));
      life.goes_on();
      EXPECT_EQ(both, std::tuple(7, 7));
    } else {
      Task<Result<int>> one = some_trouble(depth);
      Task<Result<int>> other = some_trouble(depth);
      life.waits();
      const auto both = co_await coro::when_all(std::move(one), std::move(other));
      life.goes_on();
      EXPECT_TRUE(both ? *both == std::tuple(7, 7) : both.error() == std::errc::io_error);
    }
    life.ends();
    co_return 7;
  }
  Task<int> waits_for_any(int depth) {
    Life life(lives_);
    Task<int> one = some_wait(depth);
    Task<int> other = some_wait(depth);
    life.waits();
    const auto first = co_await coro::when_any(std::move(one), std::move(other));
    life.goes_on();
    EXPECT_EQ(first.index() == 0 ? std::get<0>(first) : std::get<1>(first), 7);
    life.ends();
    co_return 7;
  }
  // Two at most are inside.
  Task<int> enters() {
    Life life(lives_);
    life.waits();
    const coro::Semaphore::Permit permit(co_await seats_.acquire());
    life.goes_on();
    const Mark inside(&inside_);
    EXPECT_LE(inside_, 2);
    const Nanos time = any_time();
    life.waits();
    co_await coro::sleep(time);
    life.goes_on();
    life.ends();
    co_return 7;
  }
  // Each value is received once, in order.
  Task<int> sends() {
    Life life(lives_);
    life.waits();
    const bool is_sent = co_await channel_.send(letter(kDeepest));
    life.goes_on();
    EXPECT_TRUE(is_sent);
    ++sent_;
    life.ends();
    co_return 7;
  }
  Task<int> receives() {
    Life life(lives_);
    life.waits();
    const std::optional<Letter> value = co_await channel_.receive();
    life.goes_on();
    ++received_;
    life.ends();
    co_return value ? value->value : 0;
  }
  Task<int> fetches() {
    Life life(lives_);
    life.waits();
    const std::optional<Letter> value = co_await mailbox_.receive();
    life.goes_on();
    ++fetched_;
    life.ends();
    co_return value ? value->value : 0;
  }
  // Its own loop may be the other one.
  Task<int> calls() {
    Life life(lives_);
    life.waits();
    auto seven = [last = last_act(kDeepest)] { return 7; };
    const Result<int> value = co_await coro::on(loop(), std::move(seven));
    life.goes_on();
    life.ends();
    co_return value.value_or(0);
  }
  // The responder may be cancelled, and the server may be destroyed.
  Task<int> asks() {
    Life life(lives_);
    http::CallOptions options{.method = http::Method::post, .body = bytes_of("seven")};
    options.deadline = 1ms + any_time();
    life.waits();
    const Result<http::Response> answer =
        co_await coro::fetch(client_, "http://a.example/", std::move(options));
    life.goes_on();
    if (answer && answer->is_success()) {
      EXPECT_EQ(answer->text(), "7 for seven");
      ++answered_;
    }
    life.ends();
    co_return 7;
  }
  Task<void> answers(http::Exchange asked) {
    Life life(lives_);
    const std::size_t most = random_.one_in(4) ? 4 : 5;
    life.waits();
    Result<coro::Received> request = co_await coro::read_body(std::move(asked), most);
    life.goes_on();
    if (request) {
      EXPECT_EQ(most, 5u);
      const Nanos time = any_time();
      life.waits();
      co_await coro::sleep(time);
      life.goes_on();
      request->exchange.respond("7 for " + std::string(text_of(request->body())));
    } else {
      EXPECT_EQ(request.error(), std::errc::broken_pipe);
    }
    life.ends();
  }
  coro::Generator<Result<int>> generates(int depth) {
    Life life(lives_);
    for (std::size_t count = random_.below(4); count > 0; --count) {
      if (random_.one_in(2)) {
        Task<Result<int>> trouble = some_trouble(depth);
        life.waits();
        co_await coro::or_return(std::move(trouble));
        life.goes_on();
      }
      act(depth + 1);
      life.waits();
      co_yield 7;
      life.goes_on();
    }
    life.ends();
  }
  Task<Result<int>> takes_one(coro::Generator<Result<int>>* values) {
    Life life(lives_);
    life.waits();
    const Result<std::optional<int>> value = co_await values->next();
    life.goes_on();
    life.ends();
    if (!value) co_return std::unexpected(value.error());
    co_return value->value_or(0);
  }
  // Reads values until the end, a failure, or a random choice.
  Task<int> asks_a_generator(int depth) {
    Life life(lives_);
    coro::Generator<Result<int>> values = generates(depth);
    for (int left = 7; left > 0;) {
      const Nanos time = any_time();
      Task<Result<int>> one = takes_one(&values);
      life.waits();
      const Result<int> value = co_await coro::with_deadline(time, std::move(one));
      life.goes_on();
      EXPECT_TRUE(value || value.error() == Error::deadline ||
                  value.error() == std::errc::io_error);
      left = value.value_or(0);
      EXPECT_TRUE(left == 7 || !values);
      act(depth + 1);
      if (random_.one_in(8)) break;
    }
    life.ends();
    co_return 7;
  }
  Task<int> meets() {
    Life life(lives_);
    life.waits();
    co_await bell_.wait();
    life.goes_on();
    life.ends();
    co_return 7;
  }

  Task<int> some_wait(int depth) {
    if (depth >= kDeepest) return sleeps();
    switch (random_.below(22)) {
      case 0:
        return at_once();
      case 1:
        return takes_a_turn();
      case 2:
      case 3:
        return has_a_deadline(depth + 1);
      case 4:
        return until_it_stops(depth + 1);
      case 5:
        return nests(depth + 1);
      case 6:
        return waits_for_all(depth + 1);
      case 7:
        return waits_for_any(depth + 1);
      case 8:
        return enters();
      case 9:
        return sends();
      case 10:
        return receives();
      case 11:
        return meets();
      case 12:
        return fetches();
      case 13:
        return calls();
      case 14:
      case 15:
        return asks();
      case 16:
      case 17:
        return asks_a_generator(depth + 1);
      default:
        return sleeps();
    }
  }

  Random random_;
  Lives lives_;
  ScriptedLoop scripted_;
  Crowd crowd_{loop(), scripted_.clock, random_};
  coro::Semaphore seats_{2};
  coro::Channel<Letter> channel_{3};
  coro::Mailbox<Letter> mailbox_{loop(), kRoom};
  coro::Event bell_;
  http::Server server_;
  http::Client client_;
  int inside_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::int64_t posted_ = 0;
  std::int64_t fetched_ = 0;
  int stopped_ = 0;
  int answered_ = 0;
  int last_acts_ = 0;   // In destructors.
  int last_depth_ = 0;  // Destructors within each other.
  bool is_settling_ = false;
};

TEST(CoroRandom, ResumesEachWaiterOnceAndDestroysNoRunningTask) {
  int lived = 0;
  const auto all = seeds(200);
  for (const std::uint64_t seed : all) {
    SCOPED_TRACE(seed);
    Program program(seed);
    program.run(400);
    if (seed % 2 == 0) program.settle();
    lived += program.has_lived();
    if (HasFailure()) return;
  }
  EXPECT_GE(lived * 2, std::ssize(all)) << "too little happens";
}

}  // namespace
}  // namespace spate::testing
