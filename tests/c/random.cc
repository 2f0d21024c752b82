// A random program that does everything that spate.h allows, in callbacks, in batches and in
// between, and a model of the events that may and must be delivered. Watchers are freed as soon as
// they are stopped, so that a sanitizer reports any later use.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "tests/c/c_loop.h"
#include "tests/support/backends.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

enum class Kind { io, timer, async, prepare, check, idle, fork };
constexpr int kKindCount = 7;

struct Thing {
  Kind kind;
  std::variant<spate_io, spate_timer, spate_async, spate_hook> it;
  std::uint32_t fed = 0;    // Events fed to it, which must be delivered together.
  bool may_happen = false;  // Active since its last stop: its own events may come.

  spate_watcher* watcher() {
    return std::visit([](auto& watcher) { return &watcher.watcher; }, it);
  }
  std::uint32_t own_events() const {
    constexpr std::uint32_t kOwn[kKindCount] = {SPATE_READ | SPATE_WRITE,
                                                SPATE_TIMER,
                                                SPATE_ASYNC,
                                                SPATE_PREPARE,
                                                SPATE_CHECK,
                                                SPATE_IDLE,
                                                SPATE_FORK};
    return kOwn[static_cast<int>(kind)];
  }
};

class Program {
 public:
  Program(std::uint64_t seed, std::string_view backend)
      : random_(seed), options_(options_with(this, backend)) {
    EXPECT_EQ(::pipe(ends_), 0);
    things_.resize(20);
  }
  ~Program() {
    for (std::unique_ptr<Thing>& thing : things_) destroy(thing);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      for (std::size_t acts = random_.below(6); acts > 0; --acts) act();
      take_events();
      if (random_.one_in(16)) settle();
      if (random_.one_in(250)) go_on_in_a_fork();
    }
    settle();
  }
  int delivered() const { return delivered_; }

 private:
  // ---- operations on one of them

  void act() {
    std::unique_ptr<Thing>& thing = things_[random_.below(things_.size())];
    if (thing == nullptr) return make(thing);
    switch (random_.below(12)) {
      case 0:
        return destroy(thing);
      case 1:
        return stop(*thing);
      case 2:
      case 3:
        return start(*thing);
      case 4:
      case 5:
        return feed(*thing);
      case 6:
        return clear(*thing);
      case 7:
        return set_priority(*thing);
      case 8:
        return spate_set_keepalive(thing->watcher(), random_.between(0, 1));
      case 9:
        EXPECT_TRUE(thing->fed == 0 || spate_is_pending(thing->watcher()) != 0);
        return;
      default:
        return act_as_its_kind(*thing);
    }
  }

  template <class Watcher>
  static void on_call(spate_loop*, Watcher* watcher, std::uint32_t events) {
    auto& program = *static_cast<Program*>(spate_loop_data(spate_watcher_loop(&watcher->watcher)));
    program.deliver(&watcher->watcher, events);
  }

  void make(std::unique_ptr<Thing>& place) {
    place = std::make_unique<Thing>();
    void* const number = &place;
    Thing& thing = *place;
    thing.kind = static_cast<Kind>(random_.below(kKindCount));
    switch (thing.kind) {
      case Kind::io:
        spate_io_init(&thing.it.emplace<spate_io>(), loop(), on_call, number);
        EXPECT_EQ(spate_io_set(&std::get<spate_io>(thing.it), ends_[1], SPATE_WRITE), 0);
        return;
      case Kind::timer:
        return spate_timer_init(&thing.it.emplace<spate_timer>(), loop(), on_call, number);
      case Kind::async:
        return spate_async_init(&thing.it.emplace<spate_async>(), loop(), on_call, number);
      default:
        constexpr spate_hook_kind kKinds[] = {SPATE_HOOK_PREPARE, SPATE_HOOK_CHECK, SPATE_HOOK_IDLE,
                                              SPATE_HOOK_FORK};
        const auto kind = kKinds[static_cast<int>(thing.kind) - static_cast<int>(Kind::prepare)];
        spate_hook_init(&thing.it.emplace<spate_hook>(), loop(), kind, on_call, number);
    }
  }

  void destroy(std::unique_ptr<Thing>& thing) {
    if (thing == nullptr) return;
    spate_stop(thing->watcher());
    thing.reset();
  }

  static void stop(Thing& thing) {
    spate_stop(thing.watcher());
    thing.fed = 0;
    thing.may_happen = false;
  }

  static void start(Thing& thing) {
    EXPECT_EQ(spate_start(thing.watcher()), 0);
    EXPECT_NE(spate_is_active(thing.watcher()), 0);
    thing.may_happen = true;
  }

  void feed(Thing& thing) {
    const std::uint32_t events = random_.one_in(2) ? SPATE_CUSTOM : SPATE_STAT;
    EXPECT_EQ(spate_feed(thing.watcher(), events), 0);
    thing.fed |= events;
  }

  static void clear(Thing& thing) {
    const std::uint32_t events = spate_clear_pending(thing.watcher());
    check_events(thing, events);
    forget(thing);
  }

  void set_priority(Thing& thing) {
    EXPECT_EQ(spate_set_priority(thing.watcher(), random_.between(-2, 2)), 0);
    forget(thing);
  }

  void act_as_its_kind(Thing& thing) {
    if (auto* const io = std::get_if<spate_io>(&thing.it)) {
      const std::uint32_t events = random_.one_in(3) ? SPATE_READ : SPATE_WRITE;
      if (random_.one_in(2)) {
        EXPECT_EQ(spate_io_modify(io, events), 0);
        return;
      }
      EXPECT_EQ(spate_io_set(io, ends_[random_.below(2)], events), 0);
      forget(thing);
    } else if (auto* const timer = std::get_if<spate_timer>(&thing.it)) {
      spate_timer_set_repeat(timer, random_.one_in(3) ? 1000 : 0);
      EXPECT_EQ(spate_timer_restart(timer, random_.span(20'000)), 0);
      forget(thing);
    } else if (auto* const async = std::get_if<spate_async>(&thing.it)) {
      spate_async_send(async);
    }
  }

  // Afterwards nothing is pending; it may still be active.
  static void forget(Thing& thing) {
    thing.fed = 0;
    thing.may_happen = spate_is_active(thing.watcher()) != 0;
  }

  // ---- events

  static void check_events(const Thing& thing, std::uint32_t events) {
    EXPECT_EQ(events & thing.fed, thing.fed) << "what was fed is lost";
    const std::uint32_t more = events & ~thing.fed;
    EXPECT_TRUE((more & ~thing.own_events()) == 0 && (more == 0 || thing.may_happen))
        << "events out of nowhere: " << std::hex << more;
  }

  void deliver(spate_watcher* watcher, std::uint32_t events) {
    auto& place = *static_cast<std::unique_ptr<Thing>*>(watcher->data);
    ASSERT_TRUE(place != nullptr && place->watcher() == watcher) << "who is this?";
    ++delivered_;
    EXPECT_NE(events, 0u);
    check_events(*place, events);
    forget(*place);
    if (is_settling_) return;
    for (std::size_t acts = random_.below(4); acts > 0; --acts) act();
    if (depth_ < 3 && random_.one_in(12)) take_events();
  }

  void take_events() {
    ++depth_;
    if (random_.one_in(3)) {
      EXPECT_EQ(spate_loop_run(loop(), SPATE_RUN_NO_WAIT), 0);
    } else {
      take_batch(random_.between(1, 12));
    }
    --depth_;
  }

  void take_batch(int most) {
    std::vector<spate_event> due(static_cast<std::size_t>(most));
    const int count = spate_loop_poll(loop(), due.data(), most, 0);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      if (!is_settling_ && random_.one_in(20)) break;  // The rest is left.
      spate_event& event = due[static_cast<std::size_t>(i)];
      spate_watcher* const watcher = spate_event_claim(loop(), &event);
      if (watcher != nullptr) deliver(watcher, event.events);
    }
    EXPECT_EQ(spate_loop_give_back(loop()), 0);
  }

  // Delivers everything pending, and starts nothing new: afterwards all fed events must have been
  // delivered, and the loop's counts must be right.
  void settle() {
    is_settling_ = true;
    for (std::unique_ptr<Thing>& thing : things_) {
      if (thing != nullptr && thing->fed == 0) stop(*thing);
    }
    for (int i = 0; i < 3; ++i) {
      if (random_.one_in(2)) {
        EXPECT_EQ(spate_loop_run(loop(), SPATE_RUN_NO_WAIT), 0);
      } else {
        take_batch(100);
      }
    }
    std::int64_t counted = 0;
    for (std::unique_ptr<Thing>& thing : things_) {
      if (thing == nullptr) continue;
      EXPECT_EQ(thing->fed, 0u) << "what was fed has not come";
      if (thing->kind == Kind::fork || spate_keepalive(thing->watcher()) == 0) continue;
      counted += spate_is_active(thing->watcher());
    }
    EXPECT_EQ(spate_loop_active_count(loop()), counted);
    is_settling_ = false;
  }

  void go_on_in_a_fork() {
    const int pid = ::fork();
    if (pid == 0) {
      const int forked = spate_loop_after_fork(loop());
      for (std::unique_ptr<Thing>& thing : things_) {
        if (thing != nullptr && thing->kind == Kind::fork) thing->may_happen = true;
      }
      for (int i = 0; i < 5; ++i) take_events();
      settle();
      ::_exit(forked == 0 && !::testing::Test::HasFailure() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }

  spate_loop* loop() const { return loop_.get(); }

  static spate_loop_options options_with(void* data, std::string_view backend) {
    spate_loop_options options;
    spate_loop_options_init(&options, sizeof(options));
    options.data = data;
    options.backend = backend.data();
    return options;
  }

  Random random_;
  const spate_loop_options options_;
  CLoop loop_{&options_};
  int ends_[2] = {-1, -1};
  std::vector<std::unique_ptr<Thing>> things_;
  int depth_ = 0;
  int delivered_ = 0;
  bool is_settling_ = false;
};

class CRandomTest : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, CRandomTest, ::testing::ValuesIn(backends_here()),
                         backend_test_name);

TEST_P(CRandomTest, DueEventsAreDeliveredOnceToTheirWatcher) {
  for (const std::uint64_t seed : seeds(10)) {
    SCOPED_TRACE(seed);
    Program program{seed, GetParam()};
    program.run(1000);
    EXPECT_GT(program.delivered(), 1000);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace spate::testing
