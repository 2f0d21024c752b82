// spate_loop: its options, its errors, and the calls allowed on other threads.
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "base/fault.h"
#include "spate/c_loop.h"
#include "spate/net/resolver.h"
#include "tests/c/c_loop.h"
#include "tests/support/make_loop.h"

namespace spate::testing {
namespace {

int create_with(const spate_loop_options& options) {
  spate_loop* loop = nullptr;
  const int code = spate_loop_create(&loop, &options);
  EXPECT_EQ(loop != nullptr, code == 0);
  spate_loop_destroy(loop);
  return code;
}

class CLoopTest : public ::testing::Test {
 protected:
  CLoopTest() { spate_loop_options_init(&options_, sizeof(options_)); }

  spate_loop_options options_;
};

TEST_F(CLoopTest, OptionsOfOlderAndNewerProgramsAreAccepted) {
  EXPECT_EQ(create_with(options_), 0);
  struct Newer {
    spate_loop_options known;
    std::uint64_t unknown;
  } newer{options_, 0};
  newer.known.size = sizeof(newer);
  EXPECT_EQ(create_with(newer.known), 0);
  newer.unknown = 1;
  EXPECT_EQ(create_with(newer.known), -EINVAL);
}

TEST_F(CLoopTest, WrongOptionsAreErrors) {
  options_.backend = "kevent";
  EXPECT_EQ(create_with(options_), SPATE_E_UNKNOWN_BACKEND);
  options_.backend = nullptr;
  options_.spin = -1;
  EXPECT_EQ(create_with(options_), -EINVAL);
  options_.spin = 0;
  options_.reserved = 1;
  EXPECT_EQ(create_with(options_), -EINVAL);
  options_.reserved = 0;
  options_.size = 0;
  EXPECT_EQ(create_with(options_), -EINVAL);
}

TEST_F(CLoopTest, BackendIsRequestedOne) {
  options_.backend = "poll";
  options_.data = this;
  const CLoop loop{&options_};
  EXPECT_STREQ(spate_loop_backend(loop.get()), "poll");
  EXPECT_EQ(spate_loop_data(loop.get()), this);
  EXPECT_EQ(spate_loop_poll_fd(loop.get()), SPATE_E_NOT_POLLABLE);
}

TEST_F(CLoopTest, CreationFailsWithoutMemory) {
  for (std::uint64_t nth = 1;; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope{plan};
    const int code = create_with(options_);
    if (plan.failures(SystemCall::allocate) == 0) break;
    EXPECT_EQ(code, -ENOMEM);
  }
}

TEST_F(CLoopTest, WaitHooksAreCalledAroundWait) {
  static std::string log;
  log.clear();
  options_.before_wait = [](spate_loop* loop, void* data) {
    log += loop == *static_cast<spate_loop**>(data) ? '(' : '?';
  };
  options_.after_wait = [](spate_loop*, void*) { log += ')'; };
  spate_loop* known = nullptr;
  options_.data = &known;
  const CLoop loop{&options_};
  known = loop.get();
  Flag timer{loop, [](spate_loop*, spate_timer*, std::uint32_t) { log += 't'; }};
  EXPECT_EQ(spate_timer_restart(timer.timer(), 0), 0);
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_ONCE), 0);
  EXPECT_EQ(log, "()t");
  EXPECT_EQ(spate_timer_restart(timer.timer(), 0), 0);
  Batch batch{loop};
  ASSERT_EQ(batch.poll(-1), 1);
  EXPECT_EQ(batch.claim(0), timer.watcher());
  EXPECT_EQ(log, "()t()");
}

TEST_F(CLoopTest, LoopIsCurrentInItsCallbacks) {
  static spate_loop* current;
  const CLoop loop;
  EXPECT_EQ(spate_loop_current(), nullptr);
  EXPECT_EQ(spate_defer(loop.get(), [](void*) { current = spate_loop_current(); }, nullptr), 0);
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_NO_WAIT), 0);
  EXPECT_EQ(current, loop.get());
  EXPECT_EQ(spate_loop_current(), nullptr);
}

TEST_F(CLoopTest, LoopConvertsToCxxAndBack) {
  const auto cxx = make_loop();
  spate_loop* const loop = to_c(*cxx);
  EXPECT_EQ(&from_c(*loop), cxx.get());
  EXPECT_EQ(to_c(*cxx), loop);
}

TEST_F(CLoopTest, StopEndsInnermostRunOrAllRuns) {
  static int depth;
  const CLoop loop;
  spate_loop_ref(loop.get());
  const auto nest = [](void* data) {
    auto* const of = static_cast<spate_loop*>(data);
    depth = spate_loop_depth(of) + 1;
    spate_defer(
        of, [](void* inner) { spate_loop_stop_all(static_cast<spate_loop*>(inner)); }, data);
    EXPECT_EQ(spate_loop_run(of, SPATE_RUN_UNTIL_DONE), 0);
  };
  EXPECT_EQ(spate_defer(loop.get(), nest, loop.get()), 0);
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(depth, 2);
  EXPECT_EQ(spate_loop_has_work(loop.get()), 1);
  spate_loop_unref(loop.get());
}

TEST_F(CLoopTest, OtherThreadsPostWakeAndSend) {
  const CLoop loop;
  static std::string order;
  order.clear();
  spate_async async;
  spate_async_init(
      &async, loop.get(),
      [](spate_loop* of, spate_async* sent, std::uint32_t events) {
        EXPECT_EQ(events, SPATE_ASYNC);
        order += 'a';
        spate_async_stop(sent);
        spate_loop_unref(of);
      },
      nullptr);
  EXPECT_EQ(spate_async_start(&async), 0);
  spate_loop_ref(loop.get());
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) spate_post(loop.get(), [](void*) { order += 'p'; }, nullptr);
    spate_wake(loop.get());
    spate_async_send(&async);
  });
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_UNTIL_DONE), 0);
  other.join();
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_NO_WAIT), 0);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'p'), 3);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 1);
}

TEST_F(CLoopTest, AfterCallsFunctionOnce) {
  const CLoop loop;
  int calls = 0;
  const auto count = [](void* data) { ++*static_cast<int*>(data); };
  EXPECT_EQ(spate_after(loop.get(), kMillisecond, count, &calls), 0);
  EXPECT_EQ(spate_after(loop.get(), INT64_MAX, count, &calls), -EINVAL);
  EXPECT_EQ(spate_loop_run(loop.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(calls, 1);
}

TEST_F(CLoopTest, TimeIsFrozenWhileSuspended) {
  const CLoop loop;
  spate_loop_suspend(loop.get());
  spate_loop_update_now(loop.get());
  const std::int64_t before = spate_loop_now(loop.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  spate_loop_update_now(loop.get());
  EXPECT_EQ(spate_loop_now(loop.get()), before);
  spate_loop_resume(loop.get());
  EXPECT_GT(spate_loop_wall_now(loop.get()), 1'600'000'000LL * 1'000'000'000);
}

TEST_F(CLoopTest, LoopMayBeEmbeddedInAnotherLoop) {
  options_.backend = kKernelSet;
  const CLoop loop{&options_};
  EXPECT_GE(spate_loop_poll_fd(loop.get()), 0);
  EXPECT_EQ(spate_loop_prepare_to_wait(loop.get()), -1);
  Flag timer{loop};
  EXPECT_EQ(spate_timer_restart(timer.timer(), 3'600'000 * kMillisecond), 0);
  EXPECT_GT(spate_loop_prepare_to_wait(loop.get()), 0);
  timer.feed();
  EXPECT_EQ(spate_loop_pending_count(loop.get()), 1u);
  EXPECT_EQ(spate_loop_prepare_to_wait(loop.get()), 0);
  EXPECT_EQ(spate_loop_reserve(loop.get(), 100, 100), 0);
}

TEST_F(CLoopTest, ActiveWatchersAreListed) {
  const CLoop loop{&options_};
  Flag timer{loop};
  EXPECT_EQ(spate_timer_restart(timer.timer(), 5 * kMillisecond), 0);
  spate_loop_ref(loop.get());
  std::vector<std::string> all;
  const auto visit = [](void* data, const spate_active* entry) {
    static_cast<std::vector<std::string>*>(data)->push_back(
        std::string(entry->kind) + entry->label + " " + std::to_string(entry->count) + " " +
        std::to_string(entry->fd) + (entry->due > 0 ? " due" : ""));
  };
  Flag weak{loop};
  spate_set_keepalive(weak.watcher(), 0);
  EXPECT_EQ(spate_timer_restart(weak.timer(), 5 * kMillisecond), 0);
  spate_loop_for_each_active(loop.get(), visit, &all);
  EXPECT_EQ(all, (std::vector<std::string>{"timer 1 -1 due", "reference 1 -1"}));
  spate_loop_unref(loop.get());
}

// ---- errors

TEST_F(CLoopTest, EveryErrorHasText) {
  char text[100];
  EXPECT_STREQ(spate_strerror(-ENOENT, text, sizeof(text)), std::strerror(ENOENT));
  for (int error = 1; error <= static_cast<int>(Error::truncated); ++error) {
    EXPECT_EQ(make_error_code(static_cast<Error>(error)).message(),
              spate_strerror(-10'000 - error, text, sizeof(text)));
    EXPECT_STRNE(text, "unknown error");
  }
  for (int error = 1; error <= static_cast<int>(NameError::bad_name); ++error) {
    EXPECT_EQ(make_error_code(static_cast<NameError>(error)).message(),
              spate_strerror(-11'000 - error, text, sizeof(text)));
  }
}

TEST_F(CLoopTest, LongErrorTextIsTruncated) {
  char text[8] = "1234567";
  EXPECT_STREQ(spate_strerror(-ENOENT, text, 3), "No");
  EXPECT_EQ(text[3], '4');
  EXPECT_STREQ(spate_strerror(-ENOENT, text, 0), "No");
  EXPECT_STREQ(spate_strerror(INT32_MIN, text, 1), "");
}

}  // namespace
}  // namespace spate::testing
