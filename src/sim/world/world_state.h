// WorldState: the state behind a World, and the step function.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/syscalls/simulation.h"
#include "spate/sim/world.h"

namespace spate::sim {

struct WorldState final : WorldInterface {
  explicit WorldState(std::uint64_t seed) : simulation_(seed, *this) {}
  ~WorldState();

  Step step(Nanos limit) override;
  bool step_threads() override;
  Outcome run(const std::function<bool()>& condition, Nanos span);

  Loop* loop_of(int host) override;
  std::string describe() const override;
  std::vector<std::string> host_names() const override;
  std::vector<ConnectionInfo> connections() const;
  Simulation& simulation() { return simulation_; }
  void at(Nanos time, Job task) { tasks_.emplace(time, std::move(task)); }

 private:
  friend World;
  static constexpr int kMostSteps = 100'000;  // Without an advance of the clock.

  // Runs a loop or thread. False if it had nothing to do; `next` is then lowered to its next time.
  bool turn(Host& host, Nanos& next);
  bool turn(Thread& thread, Nanos& next);
  bool may_run(const Thread& thread) const;
  bool turn_all(Nanos& next);

  std::string describe(const Host& host) const;
  bool run_tasks();
  Nanos next_task() const { return tasks_.empty() ? kForever : tasks_.begin()->first; }
  Step move(Nanos next, Nanos limit);

  Simulation simulation_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::multimap<Nanos, Job> tasks_;
  std::uint64_t rounds_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t fault_draws_ = 0;
  std::uint64_t plans_ = 0;
  int steps_here_ = 0;
};

}  // namespace spate::sim
