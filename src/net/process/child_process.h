// ChildProcess: the object behind a Process. When the handle is destroyed, the loop's Orphans take
// it over, and reap the process.
#pragma once

#include <system_error>
#include <utility>

#include "base/abandonable.h"
#include "base/chain.h"
#include "core/loop_local.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/net/process.h"

namespace spate {

class ChildProcess final : public Abandonable<ChildProcess>, public Linked<ChildProcess> {
 public:
  ChildProcess(Loop& loop, Process::OnExit callback, bool kills)
      : child_(loop, bind<&ChildProcess::on_exit>(this)),
        callback_(std::move(callback)),
        kills_(kills) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::error_code watch(int pid) { return child_.start(pid); }
  int pid() const { return child_.pid(); }
  bool is_running() const { return child_.is_active(); }
  std::error_code kill(int signal);

  // The handle is being destroyed.
  void let_go();

 private:
  friend class Abandonable<ChildProcess>;
  friend class Orphans;

  ~ChildProcess() = default;
  void on_exit();

  Child child_;
  Process::OnExit callback_;
  const bool kills_;
  bool is_orphan_ = false;
};

// Processes without a handle. They are reaped, and do not keep the loop alive.
class Orphans final : public LoopLocal {
 public:
  // The loop's, created on first use. nullptr when memory runs out.
  static Orphans* of(Loop& loop) { return local_of<Orphans>(loop); }
  explicit Orphans(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  void add(ChildProcess& process);
  // Deletes it.
  void remove(ChildProcess& process);

 private:
  bool open() override { return forked_.start(); }
  void on_loop_end() override { remove_all(); }
  void remove_all() {
    while (ChildProcess* process = processes_.first()) remove(*process);
  }

  Fork forked_{loop(), [this] { remove_all(); }};  // They are the parent's children.
  Chain<ChildProcess> processes_;
};

}  // namespace spate
