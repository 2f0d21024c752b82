// Random programs of several threads: loops that are run, stopped, run inside their own tasks and
// replaced by others while threads post, send, wake, raise signals, end and fork beside them.
//
// Invariants: each post is called once, or destroyed with its loop, and those of one thread in
// order; a call follows each send and each signal; no thread waits for ever; the child of a fork
// can destroy everything, or call after_fork() and continue.
//
// SPATE_SEED=<number> repeats one program, SPATE_SEEDS=<count> runs so many.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "spate/async.h"
#include "spate/loop.h"
#include "spate/signal.h"
#include "spate/timer.h"
#include "tests/support/backends.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace spate {
namespace {

using namespace std::chrono_literals;
using testing::Random;

constexpr std::size_t kLoops = 2;
constexpr std::size_t kActors = 3;
constexpr std::size_t kProducers = 400;  // Actors, the loops' threads, and temporary ones.
constexpr int kSteps = 150;
constexpr int kPatience = 60;  // Seconds.

// The posts to one loop. Only its thread writes to it, and the thread that destroys it.
struct Ledger {
  std::array<std::uint32_t, kProducers> next{};
  bool is_dying = false;
};

// The state that all threads share.
struct World {
  std::atomic<int> wrong{0};  // Violated invariants.
  std::atomic<std::uint64_t> raised[2] = {};
  std::atomic<std::size_t> producers{kActors + kLoops};
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::vector<int> children;  // Under the mutex.

  void expect(bool holds) {
    if (!holds) wrong.fetch_add(1);
  }
};

// A post's place in the order of its thread. It must be called once, or destroyed with its loop.
class Ticket {
 public:
  Ticket(World& world, Ledger& ledger, std::size_t producer, std::uint32_t number)
      : world_(&world), ledger_(&ledger), producer_(producer), number_(number) {}
  Ticket(Ticket&& other) noexcept
      : world_(other.world_),
        ledger_(std::exchange(other.ledger_, nullptr)),
        producer_(other.producer_),
        number_(other.number_) {}
  ~Ticket() {
    if (ledger_ == nullptr) return;
    world_->expect(ledger_->is_dying);
    use();
  }
  void use() {
    world_->expect(ledger_ != nullptr && ledger_->next[producer_]++ == number_);
    ledger_ = nullptr;
  }

 private:
  World* world_;
  Ledger* ledger_;
  std::size_t producer_;
  std::uint32_t number_;
};

// An Async, and whether a call has followed every send.
struct Asked {
  explicit Asked(Loop& loop) : async(loop, bind<&Asked::on_call>(this)) { async.start(); }
  void on_call() { seen = wanted.load(); }
  void ask() {
    wanted.fetch_add(1);
    async.send();
  }

  std::atomic<std::uint64_t> wanted{0};
  std::uint64_t seen = 0;
  Async async;
};

// A loop with its objects; one of several in its place.
struct Home {
  Home(World& in, std::string_view backend)
      : world(in),
        loop(std::move(*Loop::create({.backend = backend}))),
        first(*loop),
        second(*loop),
        signals{{*loop, [this] { seen[0] = world.raised[0].load(); }},
                {*loop, [this] { seen[1] = world.raised[1].load(); }}},
        tick(*loop, [] {}) {
    (void)signals[0].start(SIGUSR1);
    (void)signals[1].start(SIGUSR2);
    tick.start(3ms, 3ms);
  }
  ~Home() {
    ledger.is_dying = true;
    loop.reset();
    for (std::size_t p = 0; p < kProducers; ++p)
      world.expect(is_forked || ledger.next[p] == posted[p].load());
  }
  bool is_settled() const {
    return first.seen == first.wanted.load() && second.seen == second.wanted.load() &&
           seen[0] == world.raised[0].load() && seen[1] == world.raised[1].load();
  }

  World& world;
  Ledger ledger;
  std::array<std::atomic<std::uint32_t>, kProducers> posted{};
  std::unique_ptr<Loop> loop;
  Asked first;
  Asked second;
  std::uint64_t seen[2] = {world.raised[0].load(), world.raised[1].load()};
  Signal signals[2];
  Timer tick;
  bool is_forked = false;
};

// The place of a loop. Other threads use it under the shared lock; only its thread replaces it.
struct Place {
  std::shared_mutex mutex;
  std::unique_ptr<Home> home;

  template <class Action>
  void with(Action action) {
    const std::shared_lock lock(mutex);
    action(*home);
  }
};

// Posts from the destructors of a thread: it is made before the thread's first post, and so
// destroyed after everything that the post made.
struct LastWords {
  std::function<void()> say;
  ~LastWords() {
    if (say) say();
  }
};
thread_local LastWords last_words;

class Program {
 public:
  Program(std::uint64_t seed, std::string_view backend) : seed_(seed), backend_(backend) {
    for (Place& place : places_) place.home = std::make_unique<Home>(world_, backend_);
  }

  // Returns whether all invariants held.
  bool run() {
    std::vector<std::thread> runners;
    std::vector<std::thread> actors;
    for (std::size_t i = 0; i < kLoops; ++i) runners.emplace_back([this, i] { run_loop(i); });
    for (std::size_t i = 0; i < kActors; ++i) actors.emplace_back([this, i] { act(i); });
    for (std::thread& actor : actors) actor.join();
    const bool settled = settle();
    world_.done.store(true);
    for (Place& place : places_) stop(place);
    for (std::thread& runner : runners) runner.join();
    for (Place& place : places_) place.home.reset();
    for (const int child : world_.children) world_.expect(ends_well(child));
    return settled && world_.wrong.load() == 0;
  }

 private:
  static constexpr auto kSignals = std::to_array({SIGUSR1, SIGUSR2});

  Random random_of(std::size_t thread) const { return Random(seed_ * 1000 + thread); }

  // ---- the loops' threads

  void run_loop(std::size_t index) {
    Place& place = places_[index];
    Random random = random_of(kActors + index);
    while (!world_.done.load()) {
      place.home->loop->ref();
      place.home->loop->run();
      if (place.home->is_forked) go_on_as_child(*place.home, random.one_in(2));
      place.home->loop->unref();
      if (random.one_in(3)) replace(place);
    }
  }

  // Replaces the loop while tasks may be posted to it.
  void replace(Place& place) {
    const std::unique_lock lock(place.mutex);
    place.home.reset();
    place.home = std::make_unique<Home>(world_, backend_);
  }

  // Nothing else of the parent's is used here: its threads do not exist.
  [[noreturn]] static void go_on_as_child(Home& home, bool tells) {
    ::alarm(kPatience);
    if (!tells) {
      home.~Home();
      ::_exit(0);
    }
    if (home.loop->after_fork()) ::_exit(1);
    bool called = false;
    home.loop->post([&called] { called = true; });
    home.first.ask();
    home.world.raised[0].fetch_add(1);
    ::raise(SIGUSR1);
    const auto is_done = [&] {
      return called && home.first.seen == home.first.wanted.load() &&
             home.seen[0] == home.world.raised[0].load();
    };
    while (!is_done()) {
      if (home.loop->run(Run::once)) ::_exit(2);
    }
    ::_exit(0);
  }

  // ---- the actors

  void act(std::size_t actor) {
    Random random = random_of(actor);
    for (int step = 0; step < kSteps; ++step) {
      Place& place = places_[random.below(kLoops)];
      act_once(place, actor, random);
      if (random.one_in(4)) std::this_thread::yield();
      if (random.one_in(20)) std::this_thread::sleep_for(Nanos{random.span(300'000)});
    }
  }

  void act_once(Place& place, std::size_t actor, Random& random) {
    switch (random.below(12)) {
      case 0:
        return raise(random.below(2));
      case 1:
        return place.with([](Home& home) { home.loop->wake(); });
      case 2:
        return place.with([](Home& home) { home.second.ask(); });
      case 3:
      case 4:
        return place.with([](Home& home) { home.first.ask(); });
      case 5:
        return random.one_in(4) ? stop(place) : void();
      case 6:
        return random.one_in(3) ? let_a_thread_end(place) : void();
      case 7:
        return random.one_in(60) ? fork_in(place) : void();
      case 8:
        return post_run(place, actor);
      case 9:
        return post_that_posts(place, actor, random.below(kLoops));
      default:
        for (std::size_t i = random.below(40); i > 0; --i) post(place, actor);
    }
  }

  void post(Place& place, std::size_t producer) {
    post(place, producer, [] {});
  }
  template <class Job>
  void post(Place& place, std::size_t producer, Job task) {
    place.with([&](Home& home) { post_to(home, producer, std::move(task)); });
  }
  template <class Job>
  void post_to(Home& home, std::size_t producer, Job task) {
    const std::uint32_t number = home.posted[producer].fetch_add(1);
    Ticket ticket(world_, home.ledger, producer, number);
    world_.expect(home.loop->post([ticket = std::move(ticket), task]() mutable {
      ticket.use();
      task();
    }));
  }

  void stop(Place& place) {
    place.with([](Home& home) { home.loop->post([&home] { home.loop->stop_all(); }); });
  }

  void post_run(Place& place, std::size_t producer) {
    place.with([&](Home& home) {
      post_to(home, producer, [&home] {
        if (home.loop->depth() < 3) home.loop->run(Run::no_wait);
      });
    });
  }

  // The loop's thread posts to its own loop; to another only if that is not being replaced, since
  // the replacing thread may wait for this one.
  void post_that_posts(Place& place, std::size_t producer, std::size_t to) {
    const std::size_t from = static_cast<std::size_t>(&place - places_.data());
    post(place, producer, [this, from, to] {
      Place& target = places_[to];
      if (!target.mutex.try_lock_shared()) return;
      post_to(*target.home, kActors + from, [] {});
      target.mutex.unlock_shared();
    });
  }

  void let_a_thread_end(Place& place) {
    const std::size_t producer = world_.producers.fetch_add(1);
    if (producer >= kProducers) return;
    std::thread([&] {
      last_words.say = [&] {
        for (int i = 0; i < 3; ++i) post(place, producer);
      };
      for (int i = 0; i < 3; ++i) post(place, producer);
    }).join();
  }

  void raise(std::size_t which) {
    world_.raised[which].fetch_add(1);
    ::kill(::getpid(), kSignals[which]);
  }

  // On the loop's own thread: a child cannot use a loop that another thread runs.
  void fork_in(Place& place) {
    place.with([this](Home& home) {
      home.loop->post([this, &home] {
        const int pid = ::fork();
        if (pid == 0) {
          home.is_forked = true;
          home.loop->stop_all();
        } else {
          const std::lock_guard lock(world_.mutex);
          world_.children.push_back(pid);
        }
      });
    });
  }

  static bool ends_well(int pid) {
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // ---- the end

  // Waits until a call has followed everything. Another thread may receive a signal, and so
  // slightly later than it was raised.
  bool settle() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (!is_settled()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  bool is_settled() {
    settled_ = answered_ = 0;
    for (Place& place : places_) {
      ask(place, [this](Home* home) {
        settled_.fetch_add(home != nullptr && home->is_settled());
        answered_.fetch_add(1);
        answered_.notify_one();
      });
    }
    for (std::size_t count = 0; count < kLoops; count = answered_.load()) answered_.wait(count);
    return settled_.load() == kLoops;
  }

  // Calls `answer` on the loop's thread; with nullptr if the loop is destroyed first.
  template <class Answer>
  static void ask(Place& place, Answer answer) {
    struct Question {
      Question(Home& in, Answer then) : home(&in), answer(std::move(then)) {}
      Question(Question&& other) noexcept
          : home(std::exchange(other.home, nullptr)), answer(other.answer) {}
      ~Question() {
        if (home != nullptr) answer(nullptr);
      }
      void operator()() { answer(std::exchange(home, nullptr)); }
      Home* home;
      Answer answer;
    };
    place.with([&](Home& home) { home.loop->post(Question(home, std::move(answer))); });
  }

  const std::uint64_t seed_;
  const std::string_view backend_;
  World world_;
  std::atomic<std::size_t> settled_{0};  // Loops that were asked; answered_ counts the answers.
  std::atomic<std::size_t> answered_{0};
  std::array<Place, kLoops> places_;
};

class ThreadChaos : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ThreadChaos, KeepsInvariants) {
  for (const std::uint64_t seed : testing::seeds(12)) {
    ASSERT_TRUE(Program(seed, GetParam()).run()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ThreadChaos, ::testing::ValuesIn(testing::backends_here()),
                         testing::backend_test_name);

}  // namespace
}  // namespace spate
