// Signals and children in a World.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spate/child.h"
#include "spate/net/bytes.h"
#include "spate/net/process.h"
#include "spate/signal.h"
#include "spate/sim/running.h"
#include "spate/sim/world.h"
#include "spate/timer.h"

extern "C" {
decltype(::posix_spawn_file_actions_init) spate_sim_posix_spawn_file_actions_init;
decltype(::posix_spawn_file_actions_destroy) spate_sim_posix_spawn_file_actions_destroy;
decltype(::posix_spawnp) spate_sim_posix_spawnp;
decltype(::waitid) spate_sim_waitid;
}

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::Running;
using sim::World;

class SimSignals : public ::testing::Test {
 protected:
  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST_F(SimSignals, ReachOnlyLoopsOfTheirHost) {
  int here = 0;
  int there = 0;
  Signal one(here_.loop(), [&] { ++here; });
  Signal other(there_.loop(), [&] { ++there; });
  EXPECT_FALSE(here_.run([&](Loop&) { return one.start(SIGTERM); }));
  EXPECT_FALSE(there_.run([&](Loop&) { return other.start(SIGTERM); }));
  EXPECT_TRUE(here_.raise(SIGTERM));
  world_.run_for(1s);
  EXPECT_EQ(here, 1);
  EXPECT_EQ(there, 0);
  one.stop();
  EXPECT_FALSE(here_.raise(SIGTERM));
  EXPECT_TRUE(there_.raise(SIGTERM));
  world_.run_for(1s);
  EXPECT_EQ(here, 1);
  EXPECT_EQ(there, 1);
}

TEST_F(SimSignals, AreMergedWhileHostIsPaused) {
  int calls = 0;
  Signal signal(here_.loop(), [&] { ++calls; });
  EXPECT_FALSE(here_.run([&](Loop&) { return signal.start(SIGHUP); }));
  here_.pause();
  EXPECT_TRUE(here_.raise(SIGHUP));
  EXPECT_TRUE(here_.raise(SIGHUP));
  world_.run_for(1s);
  EXPECT_EQ(calls, 0);
  here_.resume();
  world_.run_for(1s);
  EXPECT_EQ(calls, 1);
}

TEST_F(SimSignals, DoNotAffectSystem) {
  struct sigaction before{};
  struct sigaction now{};
  ::sigaction(SIGUSR1, nullptr, &before);
  Signal signal(here_.loop(), [] {});
  EXPECT_FALSE(here_.run([&](Loop&) { return signal.start(SIGUSR1); }));
  ::sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(before.sa_handler, now.sa_handler);
}

TEST_F(SimSignals, AreDroppedWithTheirHost) {
  int calls = 0;
  Signal signal(here_.loop(), [&] { ++calls; });
  EXPECT_FALSE(here_.run([&](Loop&) { return signal.start(SIGTERM); }));
  here_.crash();
  here_.restart();
  EXPECT_FALSE(here_.raise(SIGTERM));
  signal.stop();
  EXPECT_EQ(calls, 0);
}

// ---- children

// Echoes its input in capitals, and ends when its input does.
class Upper final : public StreamHandler {
 public:
  explicit Upper(Running& running) : running_(running) {
    if (running_.output.is_open()) running_.output.start(output_);
    running_.input.start(*this);
  }
  std::size_t on_data(Bytes bytes) override {
    for (const char c : text_of(bytes)) {
      const auto upper = static_cast<char>(std::toupper(c));
      running_.output.write(std::string_view(&upper, 1));
    }
    return bytes.size();
  }
  void on_end() override { running_.exit(7); }
  void on_closed(std::error_code) override {}

 private:
  struct Quiet final : StreamHandler {
    std::size_t on_data(Bytes bytes) override { return bytes.size(); }
    void on_closed(std::error_code) override {}
  };
  Running& running_;
  Quiet output_;
};

class SimChildren : public SimSignals {
 protected:
  SimChildren() {
    here_.program("upper", [](Running& running) { return std::make_unique<Upper>(running); });
    here_.program("true", [](Running& running) { running.exit(0); });
    here_.program("sleep", [](Running&) {});
    here_.program("tough", [](Running& running) {
      running.on_signal([&running](int signum) {
        if (signum == SIGTERM) running.exit(3);
      });
    });
  }
  Result<Process> start(const ProcessOptions& options) {
    return here_.run([&](Loop& loop) {
      return spawn(loop, options, [this](const Child& child) {
        status_ = child.status();
        ended_at_ = world_.now();
      });
    });
  }
  int finish() {
    EXPECT_EQ(world_.run_until([&] { return status_.has_value(); }, 1h), Outcome::done);
    return status_.value_or(-1);
  }

  std::optional<int> status_;
  Nanos ended_at_{0};
};

TEST_F(SimChildren, CommunicateThroughPipesAndExitWithCode) {
  const std::size_t before = here_.open_descriptors();
  Process process = must(start({.file = "upper", .input = Stdio::pipe(), .output = Stdio::pipe()}));
  std::string said;
  here_.run([&](Loop&) {
    process.output.start({.on_data = [&](Bytes bytes) {
      said += text_of(bytes);
      return bytes.size();
    }});
    process.input.start({});
    process.input.write("hello");
    process.input.end();
  });
  EXPECT_EQ(finish(), 7 << 8);
  world_.run_for(1s);
  EXPECT_EQ(said, "HELLO");
  EXPECT_FALSE(process.is_running());
  here_.run([&](Loop&) { process = Process(); });
  world_.run_for(1s);
  EXPECT_EQ(here_.open_descriptors(), before);
}

TEST_F(SimChildren, UnknownProgramIsNotFound) {
  const auto process = start({.file = "nothing"});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error(), std::errc::no_such_file_or_directory);
  const auto elsewhere =
      there_.run([](Loop& loop) { return spawn(loop, {.file = "true"}, [](const Child&) {}); });
  EXPECT_FALSE(elsewhere);
}

TEST_F(SimChildren, AreKilledBySignalOrHandleIt) {
  Process sleeping = must(start({.file = "sleep"}));
  world_.run_for(10s);
  EXPECT_TRUE(sleeping.is_running());
  EXPECT_FALSE(here_.run([&](Loop&) { return sleeping.kill(SIGTERM); }));
  EXPECT_EQ(finish(), SIGTERM);
  EXPECT_EQ(sleeping.kill(SIGTERM), std::errc::no_such_process);
  status_.reset();
  Process tough = must(start({.file = "tough"}));
  world_.run_for(1s);
  EXPECT_FALSE(here_.run([&](Loop&) { return tough.kill(SIGINT); }));
  world_.run_for(1s);
  EXPECT_FALSE(status_);
  EXPECT_FALSE(here_.run([&](Loop&) { return tough.kill(SIGTERM); }));
  EXPECT_EQ(finish(), 3 << 8);
}

TEST_F(SimChildren, MayBeKilledBeforeTheyBegin) {
  Process process = must(start({.file = "upper", .input = Stdio::pipe()}));
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGKILL); }));
  EXPECT_EQ(finish(), SIGKILL);
}

TEST_F(SimChildren, LoopReapsChildrenWithoutHandle) {
  {
    const Process orphan = must(start({.file = "sleep", .kill_when_destroyed = true}));
  }
  world_.run_for(1s);
  EXPECT_FALSE(status_);
}

TEST_F(SimChildren, StatusIsTakenUnlessLeft) {
  pid_t pid = 0;
  posix_spawn_file_actions_t actions;
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  here_.run([&](Loop&) {
    EXPECT_EQ(spate_sim_posix_spawn_file_actions_init(&actions), 0);
    EXPECT_EQ(spate_sim_posix_spawnp(&pid, name, &actions, nullptr, arguments, nullptr), 0);
    EXPECT_EQ(spate_sim_posix_spawn_file_actions_destroy(&actions), 0);
  });
  world_.run_for(1s);
  const auto wait = [&](int options) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(pid);
    const int result = here_.run(
        [&](Loop&) { return spate_sim_waitid(P_PID, id, &info, WEXITED | WNOHANG | options); });
    return result == 0 ? info.si_pid : -errno;
  };
  EXPECT_EQ(wait(WNOWAIT), pid);
  EXPECT_EQ(wait(WNOWAIT), pid);
  EXPECT_EQ(wait(0), pid);
  EXPECT_EQ(wait(0), -ECHILD);
}

TEST_F(SimChildren, AreUnknownToOtherHosts) {
  const Process process = must(start({.file = "sleep"}));
  Child child(there_.loop(), [](Child&) {});
  EXPECT_EQ(there_.run([&](Loop&) { return child.start(process.pid()); }),
            std::errc::no_child_process);
  EXPECT_TRUE(process.is_running());
}

TEST_F(SimChildren, AreStoppedAndContinued) {
  Process process = must(start({.file = "tough"}));
  std::string changes;
  Child child(here_.loop(), [&](Child& one) {
    if (one.stopped()) changes += 'S';
    if (one.continued()) changes += 'C';
    if (one.exited()) changes += 'E';
  });
  EXPECT_FALSE(here_.run(
      [&](Loop&) { return child.start(process.pid(), Child::Report::exit_stop_continue); }));
  const auto kill = [&](int signum) {
    EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(signum); }));
    world_.run_for(1s);
  };
  kill(SIGSTOP);
  EXPECT_EQ(changes, "S");
  kill(SIGSTOP);
  kill(SIGTERM);
  EXPECT_TRUE(process.is_running()) << "a signal reaches a process that is stopped";
  kill(SIGCONT);
  EXPECT_EQ(changes, "SCE");
  EXPECT_EQ(child.exit_code(), 3);
  EXPECT_EQ(child.start(1), std::errc::no_child_process);
}

TEST_F(SimChildren, MayBeKilledWhileStopped) {
  Process process = must(start({.file = "sleep"}));
  world_.run_for(1s);
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGTSTP); }));
  world_.run_for(1s);
  EXPECT_FALSE(status_);
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGTERM); }));
  world_.run_for(1s);
  EXPECT_FALSE(status_);
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGKILL); }));
  EXPECT_EQ(finish(), SIGKILL);
}

TEST_F(SimChildren, DetectThatTheyAreStopped) {
  std::string told;
  std::function<void()> ticking;
  std::optional<Timer> tick;
  here_.program("ticker", [&](sim::Running& running) {
    ticking = [&told, &running] { told += running.is_stopped() ? '-' : '+'; };
    tick.emplace(running.loop(), [&ticking] { ticking(); });
    tick->start(1s, 1s);
  });
  Process process = must(start({.file = "ticker"}));
  world_.run_for(1500ms);
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGSTOP); }));
  world_.run_for(1s);
  EXPECT_FALSE(here_.run([&](Loop&) { return process.kill(SIGCONT); }));
  world_.run_for(1s);
  EXPECT_EQ(told, "+-+");
  tick.reset();
}

TEST_F(SimChildren, AreLostInCrash) {
  Process process = must(start({.file = "upper", .input = Stdio::pipe()}));
  world_.run_for(1s);
  here_.crash();
  world_.run_for(1s);
  here_.restart();
  world_.run_for(1s);
  EXPECT_FALSE(status_);
  Child child(here_.loop(), [](Child&) {});
  EXPECT_EQ(here_.run([&](Loop&) { return child.start(process.pid()); }),
            std::errc::no_child_process);
  Process again = must(start({.file = "true"}));
  EXPECT_EQ(finish(), 0);
}

}  // namespace
}  // namespace spate::testing
