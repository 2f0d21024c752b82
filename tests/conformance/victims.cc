#include "tests/conformance/victims.h"

#include <csignal>

namespace spate::testing {

namespace {

template <class W>
class VictimOf : public Victim {
 public:
  template <class... Args>
  explicit VictimOf(Loop& loop, Args... args) : probe_(loop, args...) {}

  void stop() override { probe_->stop(); }
  void cause() override { EXPECT_TRUE(feed()); }
  bool feed() override { return probe_->feed(); }
  void clear_pending() override { probe_->clear_pending(); }
  bool is_active() const override { return probe_.watcher.is_active(); }
  bool is_pending() const override { return probe_.watcher.is_pending(); }
  int calls() const override { return probe_.calls; }
  void then(std::function<void()> action) override { probe_.then = std::move(action); }

 protected:
  Probe<W> probe_;
};

class IoVictim final : public VictimOf<Io> {
 public:
  IoVictim(Loop& loop, Surroundings& around)
      : VictimOf(loop, around.pipe.in(), Events::read), around_(around) {}
  void start() override { EXPECT_TRUE(probe_->start()); }
  void cause() override { around_.pipe.fill(); }

 private:
  Surroundings& around_;
};

class TimerVictim final : public VictimOf<Timer> {
 public:
  using VictimOf::VictimOf;
  void start() override { EXPECT_TRUE(probe_->start(1h, 1h)); }
  void cause() override { EXPECT_TRUE(probe_->restart(0ns)); }
};

class PeriodicVictim final : public VictimOf<Periodic> {
 public:
  using VictimOf::VictimOf;
  void start() override { EXPECT_TRUE(probe_->start_every(1h)); }
  void cause() override { EXPECT_TRUE(probe_->start_at(WallTime{})); }
};

class SignalVictim final : public VictimOf<Signal> {
 public:
  using VictimOf::VictimOf;
  void start() override { EXPECT_FALSE(probe_->start(SIGUSR2)); }
  void cause() override { ::raise(SIGUSR2); }
};

class ChildVictim final : public VictimOf<Child> {
 public:
  ChildVictim(Loop& loop, Surroundings& around, Child::Report report)
      : VictimOf(loop), around_(around), report_(report) {}
  void start() override {
    if (probe_->is_active()) return;
    pid_ = fork_sleeper();
    around_.children.push_back(pid_);
    EXPECT_FALSE(probe_->start(pid_, report_));
  }
  void cause() override {
    ::kill(pid_, SIGKILL);
    if (probe_->is_active()) await_end(pid_);
  }

 private:
  Surroundings& around_;
  Child::Report report_;
  int pid_ = -1;
};

class StatVictim final : public VictimOf<Stat> {
 public:
  StatVictim(Loop& loop, Surroundings& around) : VictimOf(loop), around_(around) {}
  void start() override { EXPECT_FALSE(probe_->start(around_.dir.file("file"))); }
  void cause() override { around_.dir.append("file"); }

 private:
  Surroundings& around_;
};

template <class Hook>
class HookVictim final : public VictimOf<Hook> {
 public:
  using VictimOf<Hook>::VictimOf;
  void start() override { EXPECT_TRUE(this->probe_->start()); }
};

class AsyncVictim final : public VictimOf<Async> {
 public:
  using VictimOf::VictimOf;
  void start() override { EXPECT_TRUE(probe_->start()); }
  void cause() override { probe_->send(); }
};

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"Io",          "Timer",   "Periodic", "Signal",  "Child",
                                    "TracedChild", "Stat",    "Idle",     "Prepare", "Check",
                                    "Fork",        "Cleanup", "Async"};
  return kNames[static_cast<int>(kind)];
}

Surroundings::~Surroundings() {
  for (const int pid : children) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);  // If a watcher has reaped it, there is no such child.
  }
}

std::unique_ptr<Victim> make_victim(Kind kind, Loop& loop, Surroundings& around) {
  switch (kind) {
    case Kind::io:
      return std::make_unique<IoVictim>(loop, around);
    case Kind::timer:
      return std::make_unique<TimerVictim>(loop);
    case Kind::periodic:
      return std::make_unique<PeriodicVictim>(loop);
    case Kind::signal:
      return std::make_unique<SignalVictim>(loop);
    case Kind::child:
      return std::make_unique<ChildVictim>(loop, around, Child::Report::exit);
    case Kind::traced_child:
      return std::make_unique<ChildVictim>(loop, around, Child::Report::exit_stop_continue);
    case Kind::stat:
      return std::make_unique<StatVictim>(loop, around);
    case Kind::idle:
      return std::make_unique<HookVictim<Idle>>(loop);
    case Kind::prepare:
      return std::make_unique<HookVictim<Prepare>>(loop);
    case Kind::check:
      return std::make_unique<HookVictim<Check>>(loop);
    case Kind::fork:
      return std::make_unique<HookVictim<Fork>>(loop);
    case Kind::cleanup:
      return std::make_unique<HookVictim<Cleanup>>(loop);
    case Kind::async:
      return std::make_unique<AsyncVictim>(loop);
  }
  return nullptr;
}

}  // namespace spate::testing
