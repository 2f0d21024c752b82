// Chores: callbacks that a loop is asked to make later: after(), defer(), on_signal(), offload().
// The threads of a pool are the only other threads. A turn waits for the jobs that they have begun,
// so that a seed repeats nearly always.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "chaos/program.h"
#include "spate/offload.h"

namespace spate::chaos {

class World;
struct Visit;

class Chores {
 public:
  explicit Chores(World& world);
  ~Chores();

  void act(const Step& step, const Visit& visit);

  // Waits for the jobs that are not held.
  void wait_for_jobs();
  // Called when run() has returned outside of callbacks.
  void look();
  void make_friendly();
  void check_settled();
  void on_loop_gone();
  void close();

 private:
  struct Job;
  struct Gate;

  bool after(const Step& step);
  bool defer();
  bool use_signal(const Step& step);
  bool offload(const Step& step);
  bool use_offloading(const Step& step);
  void on_after(Nanos due);
  void on_signal(std::size_t which);
  void on_done(Job& job, int value);

  struct Signal {
    int number;
    unsigned raised = 0;  // Since the watcher was started.
    unsigned called = 0;
    bool is_due = false;
  };

  World& world_;
  unsigned after_asked_ = 0;
  unsigned after_called_ = 0;
  unsigned deferred_ = 0;
  unsigned defer_called_ = 0;
  unsigned defer_due_ = 0;  // So many must have run when run() returns.
  bool in_defer_ = false;
  std::vector<Signal> signals_;
  std::shared_ptr<Gate> gate_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace spate::chaos
