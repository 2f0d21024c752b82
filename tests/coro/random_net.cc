// A random program of tasks over everything that the kernel and HTTP offer: streams, packets,
// listeners, names, signals, children, threads, requests, calls and WebSockets, each cancelled
// anywhere. Received data was sent, and is complete and in order, whichever tasks are cancelled
// meanwhile: one task after another reads and checks each stream to its end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "spate/coro/child.h"
#include "spate/coro/connect.h"
#include "spate/coro/datagram.h"
#include "spate/coro/listener.h"
#include "spate/coro/offload.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/or_return.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "tests/coro/crowd.h"
#include "tests/coro/life.h"
#include "tests/coro/random_http.h"
#include "tests/coro/text.h"
#include "tests/support/backends.h"
#include "tests/support/random.h"
#include "tests/support/scripted.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Scope;
using coro::Task;

constexpr int kMostBusy = 40;

// A child process that exits soon, and is reaped whether or not a task waits for it.
class Brief {
 public:
  Brief() : pid_(fork()) {
    if (pid_ == 0) _exit(7);
  }
  ~Brief() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Brief(const Brief&) = delete;
  Brief& operator=(const Brief&) = delete;

  int pid() const { return pid_; }
  void is_reaped() { pid_ = -1; }

 private:
  int pid_;
};

class NetProgram {
 public:
  NetProgram(std::uint64_t seed, std::string_view backend)
      : random_(seed), loop_(must(Loop::create({.backend = backend, .clock = &clock_}))) {
    EXPECT_FALSE(signals_.add(SIGUSR1));
    EXPECT_FALSE(signals_.add(SIGUSR2));
  }
  ~NetProgram() {
    crowd_.end();
    EXPECT_EQ(lives_.live, 0) << "coroutines are left";
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act(0);
      EXPECT_FALSE(loop().run(Run::no_wait));
      clock_.advance(Nanos{random_.span(2'000'000)});
    }
  }
  // All tasks end if they are left alone.
  void settle() {
    is_settling_ = true;
    for (int i = 0; i < 20'000 && lives_.live > 0; ++i) {
      std::raise(SIGUSR1);
      greet();
      other_->run(Run::no_wait);
      EXPECT_FALSE(loop().run(Run::no_wait));
      clock_.advance(1ms);
      if (i > 3000) ::usleep(100);  // Threads and children need real time.
    }
    EXPECT_EQ(lives_.live, 0) << "somebody is not woken";
  }
  void end_loop() { loop_.reset(); }
  const Lives& lives() const { return lives_; }
  int done() const { return done_; }

 private:
  Loop& loop() { return *loop_; }
  Nanos any_time() { return Nanos{random_.span(3'000'000)}; }

  // ---- actions that are allowed at any time

  void act(int depth) {
    if (is_settling_) return;
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
        if (lives_.live < kMostBusy) crowd_.any().spawn(busy());
        return;
      case 3:
      case 4:
      case 5:
        if (random_.one_in(4)) crowd_.disturb_any();
        return;
      case 6:
        if (depth > 0) crowd_.run_loop_inside();
        return;
      case 7:
        std::raise(random_.one_in(2) ? SIGUSR1 : SIGUSR2);
        return;
      case 8:
        other_->run(Run::no_wait);
        return;
      default:
        greet();
        return;
    }
  }
  // Connects to the listener.
  void greet() {
    if (guests_.size() >= 8) guests_.erase(guests_.begin());
    spate::Stream& guest = guests_.emplace_back();
    if (guest.connect(loop(), door_.listener().address(), nobody_)) guests_.pop_back();
  }

  // ---- tasks

  Task<void> busy() {
    Life life(lives_);
    for (std::size_t steps = 1 + random_.below(4); steps > 0; --steps) {
      Task<int> wait = wrapped(some_wait());
      life.waits();
      const int value = co_await std::move(wait);
      life.goes_on();
      EXPECT_EQ(value, 7);
      ++done_;
      act(1);
    }
    life.ends();
  }
  // Inside a wait that may cancel it.
  Task<int> wrapped(Task<int> task) {
    switch (random_.below(5)) {
      case 0:
        return in_time(std::move(task));
      case 1:
        return races(std::move(task));
      case 2:
        return goes_with(std::move(task));
      case 3:
        return stoppable(std::move(task));
      default:
        return task;
    }
  }
  Task<int> in_time(Task<int> task) {
    Life life(lives_);
    const Nanos time = any_time();
    life.waits();
    const Result<int> value = co_await coro::with_deadline(time, std::move(task));
    life.goes_on();
    EXPECT_TRUE(value ? *value == 7 : value.error() == Error::deadline);
    life.ends();
    co_return 7;
  }
  Task<int> races(Task<int> task) {
    Life life(lives_);
    Task<int> other = sleeps();
    life.waits();
    co_await coro::when_any(std::move(task), std::move(other));
    life.goes_on();
    act(1);
    life.ends();
    co_return 7;
  }
  Task<int> goes_with(Task<int> task) {
    Life life(lives_);
    Task<int> other = some_wait();
    life.waits();
    const auto both = co_await coro::when_all(std::move(task), std::move(other));
    life.goes_on();
    EXPECT_EQ(both, std::tuple(7, 7));
    life.ends();
    co_return 7;
  }
  Task<Result<int>> as_result(Task<int> task) {
    Life life(lives_);
    life.waits();
    const int value = co_await std::move(task);
    life.goes_on();
    life.ends();
    co_return value;
  }
  Task<int> stoppable(Task<int> task) {
    Life life(lives_);
    Task<Result<int>> result = as_result(std::move(task));
    life.waits();
    const Result<int> value = co_await coro::until_stop(std::move(result));
    life.goes_on();
    EXPECT_TRUE(value || value.error() == std::errc::operation_canceled);
    life.ends();
    co_return 7;
  }
  Task<int> sleeps() {
    Life life(lives_);
    const Nanos time = any_time();
    life.waits();
    co_await coro::sleep(time);
    life.goes_on();
    life.ends();
    co_return 7;
  }

  // ---- streams: one end writes; tasks read the other one after another, and some are cancelled

  Task<void> writes(coro::Stream* stream, Text* text) {
    Life life(lives_);
    for (std::size_t count = 1 + random_.below(6); count > 0; --count) {
      const bool is_long = random_.one_in(8);
      const std::string_view part = text->next(1 + random_.below(is_long ? kLongest : 200));
      text->sent += part.size();
      life.waits();
      const Result<void> sent = co_await stream->send(part);
      life.goes_on();
      EXPECT_TRUE(sent);
      act(2);
    }
    const std::string_view rest = text->next(16 - text->sent % 16);
    text->sent += rest.size();
    stream->write(rest);
    life.waits();
    co_await stream->finish();
    life.goes_on();
    life.ends();
  }
  // Returns true when both ends have finished.
  Task<bool> reads_once(coro::Stream* stream, Text* text) {
    Life life(lives_);
    Result<Bytes> bytes;
    const std::size_t kind = random_.below(4);
    const std::size_t count = 1 + random_.below(100);
    life.waits();
    if (kind == 0) {
      bytes = co_await stream->read_exactly(count);
    } else if (kind == 1) {
      bytes = co_await stream->read(Delimiter{});
    } else if (kind == 2) {
      bytes = co_await coro::until_stop(stream->read_some());
    } else {
      bytes = co_await stream->read_some();
    }
    life.goes_on();
    const bool is_over = !bytes || (kind >= 2 && bytes->empty());
    if (!is_over) {
      text->check(*bytes);
      if (kind == 1) ++text->read;  // The delimiter.
      act(2);
    } else if (!bytes && bytes.error() == Error::truncated) {
      text->read = text->sent;
    }
    life.ends();
    co_return is_over && (bytes || bytes.error() != std::errc::operation_canceled);
  }
  Task<void> reads(coro::Stream* stream, Text* text) {
    Life life(lives_);
    for (;;) {
      const Nanos time = any_time();
      Task<bool> read = reads_once(stream, text);
      life.waits();
      const Result<bool> is_over = co_await coro::with_deadline(time, std::move(read));
      life.goes_on();
      if (is_over && *is_over) break;
      life.waits();
      co_await coro::next_turn();
      life.goes_on();
    }
    EXPECT_EQ(text->read, text->sent) << "lost";
    life.ends();
  }
  Task<int> talks() {
    Life life(lives_);
    auto pair =
        random_.one_in(2) ? must(Stream::memory_pair(loop())) : must(Stream::socket_pair(loop()));
    coro::Stream left(std::move(pair.first));
    coro::Stream right(std::move(pair.second));
    right.stream().set_half_open(true);
    Text text;
    Task<void> write = writes(&left, &text);
    Task<void> read = closes_behind(&right, &text);
    life.waits();
    co_await coro::when_all(std::move(write), std::move(read));
    life.goes_on();
    ++talked_;
    life.ends();
    co_return 7;
  }
  Task<void> closes_behind(coro::Stream* stream, Text* text) {
    Life life(lives_);
    Task<void> read = reads(stream, text);
    life.waits();
    co_await std::move(read);
    life.goes_on();
    stream->stream().end();
    life.ends();
  }

  // ---- the kernel

  Task<void> sends_numbers(coro::Datagram* from, Address to) {
    Life life(lives_);
    for (int i = 0; i < 5; ++i) {
      const std::string text = std::to_string(i);
      life.waits();
      const Result<void> sent = co_await from->send(text, to);
      life.goes_on();
      EXPECT_TRUE(sent);
      act(2);
    }
    life.ends();
  }
  Task<int> receives_one(coro::Datagram* into) {
    Life life(lives_);
    life.waits();
    const Result<Packet> packet = co_await into->receive();
    life.goes_on();
    int number = -1;
    EXPECT_TRUE(packet);
    if (packet) number = std::atoi(std::string(text_of(packet->bytes)).c_str());
    life.ends();
    co_return number;
  }
  Task<void> receives_numbers(coro::Datagram* into) {
    Life life(lives_);
    for (int next = 0; next < 5;) {
      const Nanos time = any_time();
      Task<int> one = receives_one(into);
      life.waits();
      const Result<int> number = co_await coro::with_deadline(time, std::move(one));
      life.goes_on();
      if (!number) continue;
      EXPECT_EQ(*number, next) << "lost, or doubled";
      ++next;
    }
    life.ends();
  }
  Task<int> exchanges_packets() {
    Life life(lives_);
    coro::Datagram from(must(Datagram::create(loop(), Address::loopback_ipv4(0))));
    coro::Datagram into(must(Datagram::create(loop(), Address::loopback_ipv4(0))));
    Task<void> send = sends_numbers(&from, into.datagram().local_address());
    Task<void> receive = receives_numbers(&into);
    life.waits();
    co_await coro::when_all(std::move(send), std::move(receive));
    life.goes_on();
    life.ends();
    co_return 7;
  }
  Task<Result<coro::Accepted>> accepts_or_returns() {
    Life life(lives_);
    life.waits();
    coro::Accepted newcomer(co_await coro::or_return(door_.accept()));
    life.goes_on();
    life.ends();
    co_return std::move(newcomer);
  }
  Task<int> accepts() {
    Life life(lives_);
    const std::size_t kind = random_.below(3);
    Result<coro::Accepted> newcomer = std::unexpected(Error::ended);
    life.waits();
    if (kind == 0) {
      newcomer = co_await door_.accept();
    } else if (kind == 1) {
      newcomer = co_await coro::until_stop(door_.accept());
    } else {
      newcomer = co_await accepts_or_returns();
    }
    life.goes_on();
    const bool is_stopped = !newcomer && newcomer.error() == std::errc::operation_canceled;
    EXPECT_TRUE(is_stopped ? kind == 1 : newcomer && newcomer->stream.is_open());
    life.ends();
    co_return 7;
  }
  Task<int> connects() {
    Life life(lives_);
    const std::uint16_t port = door_.listener().address().port();
    const bool by_name = random_.one_in(2);
    Result<Stream> stream;
    life.waits();
    if (by_name) {
      stream = co_await coro::connect("127.0.0.1", port, {.timeout = 1h});
    } else {
      const Address address = door_.listener().address();
      stream = co_await coro::connect(address);
    }
    life.goes_on();
    EXPECT_TRUE(stream);
    life.ends();
    co_return 7;
  }
  Task<int> resolves() {
    Life life(lives_);
    life.waits();
    const auto addresses = co_await coro::resolve("127.0.0.1", 80);
    life.goes_on();
    EXPECT_TRUE(addresses && addresses->size() == 1);
    life.ends();
    co_return 7;
  }
  Task<int> hears_a_signal() {
    Life life(lives_);
    life.waits();
    const int signum = co_await signals_.next();
    life.goes_on();
    EXPECT_TRUE(signum == SIGUSR1 || signum == SIGUSR2);
    life.ends();
    co_return 7;
  }
  Task<int> outlives_a_child() {
    Life life(lives_);
    Brief child;
    life.waits();
    const Result<int> status = co_await coro::exit_of(child.pid());
    life.goes_on();
    EXPECT_TRUE(status && WEXITSTATUS(*status) == 7);
    child.is_reaped();
    life.ends();
    co_return 7;
  }
  Task<int> has_work_done() {
    Life life(lives_);
    life.waits();
    const Result<int> value = co_await coro::offload([] { return 7; }, pool_);
    life.goes_on();
    life.ends();
    co_return value.value_or(0);
  }
  Task<int> calls_elsewhere() {
    Life life(lives_);
    life.waits();
    const Result<int> value = co_await coro::on(*other_, [] { return 7; });
    life.goes_on();
    life.ends();
    co_return value.value_or(0);
  }

  Task<int> some_wait() {
    switch (random_.below(20)) {
      case 0:
        return exchanges_packets();
      case 1:
        return accepts();
      case 2:
      case 3:
        return connects();
      case 4:
        return resolves();
      case 5:
        return hears_a_signal();
      case 6:
        return random_.one_in(16) ? outlives_a_child() : sleeps();
      case 7:
        return has_work_done();
      case 8:
        return calls_elsewhere();
      case 9:
      case 10:
        return http_.asks();
      case 11:
      case 12:
        return http_.chats_a_while();
      case 13:
        return sleeps();
      default:
        return talks();
    }
  }

  struct Nobody final : StreamHandler {
    std::size_t on_data(Bytes bytes) override { return bytes.size(); }
    void on_closed(std::error_code) override {}
  };

  Random random_;
  Lives lives_;
  ScriptedClock clock_;
  ThreadPool pool_;
  std::unique_ptr<Loop> loop_;
  Crowd crowd_{loop(), clock_, random_};
  std::unique_ptr<Loop> other_ = must(Loop::create());
  coro::Signals signals_{loop()};
  coro::Listener door_ = must(coro::Listener::create(loop(), Address::loopback_ipv4(0)));
  Nobody nobody_;
  std::vector<spate::Stream> guests_;
  HttpTasks http_{loop(), crowd_, random_, lives_, [this] { act(2); }};
  int done_ = 0;
  int talked_ = 0;
  bool is_settling_ = false;

 public:
  bool has_lived() const { return talked_ > 0 && http_.has_lived(); }
};

TEST(CoroRandomNet, ReceivesExactlySentDataDespiteCancellations) {
  int lived = 0;
  const auto all = seeds(32);
  for (const std::uint64_t seed : all) {
    SCOPED_TRACE(seed);
    NetProgram program(seed, backends_here()[seed % backends_here().size()]);
    program.run(300);
    if (seed % 2 == 0) program.settle();
    if (seed % 8 == 1) program.end_loop();
    lived += program.has_lived();
    if (HasFailure()) return;
  }
  EXPECT_GE(lived * 2, std::ssize(all)) << "too little happens";
}

}  // namespace
}  // namespace spate::testing
