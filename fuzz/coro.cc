// Coroutines: the input chooses the steps of tasks over two scopes, a channel and a connection in
// memory, and which task is cancelled, stopped or destroyed, and when. Each byte and each value
// arrives once, in order. Only waiting tasks are resumed, no running task is destroyed, and nothing
// leaks.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "input.h"
#include "spate/coro/channel.h"
#include "spate/coro/or_return.h"
#include "spate/coro/stream.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "spate/layer/layer.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

using coro::Scope;
using coro::Task;

constexpr int kMostTasks = 64;
constexpr int kDeepest = 6;
constexpr std::size_t kMostBytes = 300'000;

class HandClock final : public Clock {
 public:
  Nanos monotonic() override { return now; }
  WallTime wall() override { return WallTime(now); }

  Nanos now{1'000'000'000};
};

const std::string& all_bytes() {
  static const std::string bytes = [] {
    std::string made(2 * kMostBytes, ' ');
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = i % 16 == 15 ? '\n' : static_cast<char>(i * 7 % 251);
    return made;
  }();
  return bytes;
}

class Program {
 public:
  explicit Program(Input& input) : input_(input) {
    auto pair = must(Stream::memory_pair(*loop_));
    left_.emplace(std::move(pair.first));
    right_.emplace(std::move(pair.second));
  }
  ~Program() {
    for (auto& scope : scopes_) scope.reset();
    check(live_ == 0);
  }

  void run() {
    while (!input_.empty()) {
      act();
      turn();
    }
    if (input_.flag()) return;  // With all that is under way.
    for (auto& scope : scopes_) scope->cancel();
    check(live_ == 0);
    check(received_ + static_cast<int>(channel_.size()) == sent_);
  }

 private:
  // A coroutine, as its own local.
  class Life {
   public:
    explicit Life(Program& program) : program_(program) { ++program_.live_; }
    ~Life() {
      check(!is_running_);
      --program_.live_;
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

    void waits() { check(std::exchange(is_running_, false)); }
    void goes_on() { check(!std::exchange(is_running_, true)); }

   private:
    Program& program_;
    bool is_running_ = true;
  };

  Nanos any_time() { return Nanos(input_.byte() * 10'000); }
  Scope& any_scope() { return *scopes_[input_.below(2)]; }

  void turn() {
    clock_.now += any_time();
    check(!loop_->run(Run::no_wait));
  }
  // A step that is allowed at any time.
  void act() {
    switch (input_.below(8)) {
      case 0:
        return any_scope().cancel();
      case 1:
        return any_scope().stop();
      case 2: {
        auto& scope = scopes_[input_.below(2)];
        const std::unique_ptr<Scope> old = std::exchange(scope, std::make_unique<Scope>(*loop_));
        return;
      }
      case 3:
        if (nested_ == 2) return;
        ++nested_;
        turn();
        --nested_;
        return;
      default:
        if (live_ < kMostTasks) any_scope().spawn(steps());
        return;
    }
  }

  Task<void> steps() {
    Life life(*this);
    for (std::size_t count = input_.below(4); count > 0; --count) {
      Task<Result<int>> wait = some_wait(0);
      life.waits();
      co_await std::move(wait);
      life.goes_on();
      act();
    }
    life.waits();
  }
  Task<Result<int>> sleeps() {
    Life life(*this);
    const Nanos time = any_time();
    life.waits();
    co_await coro::sleep(time);
    life.goes_on();
    life.waits();
    co_return 7;
  }
  Task<Result<int>> is_short_of_time(int depth) {
    Life life(*this);
    const Nanos time = any_time();
    Task<Result<int>> task = some_wait(depth);
    life.waits();
    const Result<int> done = co_await coro::with_deadline(time, std::move(task));
    life.goes_on();
    act();
    life.waits();
    co_return done;
  }
  Task<Result<int>> can_be_stopped(int depth) {
    Life life(*this);
    Task<Result<int>> task = some_wait(depth);
    life.waits();
    const Result<int> done = co_await coro::until_stop(std::move(task));
    life.goes_on();
    act();
    life.waits();
    co_return done;
  }
  Task<Result<int>> fails_with_it(int depth) {
    Life life(*this);
    Task<Result<int>> task = some_wait(depth);
    life.waits();
    const int done = co_await coro::or_return(std::move(task));
    life.goes_on();
    life.waits();
    co_return done;
  }
  Task<Result<int>> waits_for_all(int depth) {
    Life life(*this);
    Task<Result<int>> one = some_wait(depth);
    Task<Result<int>> other = some_wait(depth);
    life.waits();
    co_await coro::when_all(std::move(one), std::move(other));
    life.goes_on();
    act();
    life.waits();
    co_return 7;
  }
  Task<Result<int>> waits_for_any(int depth) {
    Life life(*this);
    Task<Result<int>> one = some_wait(depth);
    Task<Result<int>> other = some_wait(depth);
    life.waits();
    co_await coro::when_any(std::move(one), std::move(other));
    life.goes_on();
    act();
    life.waits();
    co_return 7;
  }
  Task<Result<int>> sends_a_value() {
    Life life(*this);
    life.waits();
    const coro::Mutex::Lock lock(co_await senders_.lock());
    const bool is_sent = co_await channel_.send(sent_);
    life.goes_on();
    if (is_sent) ++sent_;
    life.waits();
    co_return 7;
  }
  Task<Result<int>> receives_a_value() {
    Life life(*this);
    life.waits();
    const std::optional<int> value = co_await channel_.receive();
    life.goes_on();
    check(value == received_);
    ++received_;
    life.waits();
    co_return 7;
  }
  Task<Result<int>> writes() {
    Life life(*this);
    life.waits();
    const coro::Mutex::Lock lock(co_await writers_.lock());
    life.goes_on();
    const std::size_t size = input_.flag() ? input_.byte() : input_.byte() * 500;
    const std::string_view part = std::string_view(all_bytes()).substr(written_, size);
    if (written_ < kMostBytes) {
      written_ += part.size();
      life.waits();
      const Result<void> sent = co_await left_->send(part);
      life.goes_on();
      check(sent.has_value());
      act();
    }
    life.waits();
    co_return 7;
  }
  Task<Result<int>> reads() {
    Life life(*this);
    life.waits();
    const coro::Mutex::Lock lock(co_await readers_.lock());
    life.goes_on();
    const std::size_t kind = input_.below(3);
    const std::size_t size = 1 + input_.byte();
    Result<Bytes> bytes;
    life.waits();
    if (kind == 0) {
      bytes = co_await right_->read_some();
    } else if (kind == 1) {
      bytes = co_await right_->read_exactly(size);
    } else {
      bytes = co_await coro::until_stop(right_->read(Delimiter{.keep_delimiter = true}));
    }
    life.goes_on();
    if (bytes) {
      check(text_of(*bytes) == std::string_view(all_bytes()).substr(read_, bytes->size()));
      read_ += bytes->size();
      check(read_ <= written_);
      act();
    } else {
      check(bytes.error() == std::errc::operation_canceled);
    }
    life.waits();
    co_return 7;
  }
  Task<Result<int>> some_wait(int depth) {
    if (depth == kDeepest) return sleeps();
    switch (input_.below(12)) {
      case 0:
        return is_short_of_time(depth + 1);
      case 1:
        return can_be_stopped(depth + 1);
      case 2:
        return fails_with_it(depth + 1);
      case 3:
        return waits_for_all(depth + 1);
      case 4:
        return waits_for_any(depth + 1);
      case 5:
        return sends_a_value();
      case 6:
        return receives_a_value();
      case 7:
      case 8:
        return writes();
      case 9:
      case 10:
        return reads();
      default:
        return sleeps();
    }
  }

  Input& input_;
  HandClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));
  coro::Channel<int> channel_{2};
  coro::Mutex senders_;
  coro::Mutex writers_;
  coro::Mutex readers_;
  std::optional<coro::Stream> left_;
  std::optional<coro::Stream> right_;
  std::unique_ptr<Scope> scopes_[2] = {std::make_unique<Scope>(*loop_),
                                       std::make_unique<Scope>(*loop_)};
  int live_ = 0;
  int nested_ = 0;
  int sent_ = 0;
  int received_ = 0;
  std::size_t written_ = 0;
  std::size_t read_ = 0;
};

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  spate::fuzz::Input input(data, size);
  spate::fuzz::Program(input).run();
  return 0;
}
