// ChildProcess: the state behind a Process. When the handle is destroyed, the loop's Orphans own
// it, and reap the process.
#pragma once

#include <system_error>
#include <utility>

#include "base/abandonable.h"
#include "base/list.h"
#include "core/loop_function.h"
#include "core/loop_local.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/named_callback.h"
#include "spate/net/process.h"

namespace spate {

class ChildProcess final : public Abandonable<ChildProcess>, public Linked<ChildProcess> {
 public:
  ChildProcess(Loop& loop, Process::OnExit callback, bool kills)
      : child_(loop, named<Child, ActiveKind::child, describe>(bind<&ChildProcess::on_exit>(this))),
        loop_ends_(loop, bind<&ChildProcess::on_loop_end>(this)),
        callback_(loop, std::move(callback)),
        kills_(kills) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::error_code watch(int pid);
  int pid() const { return child_.pid(); }
  bool is_running() const { return child_.is_active(); }
  std::error_code kill(int signal);

  // Called by the handle's destructor.
  void let_go();

 private:
  friend class Abandonable<ChildProcess>;
  friend class Orphans;

  // An orphan does not keep the loop alive: Orphans calls Loop::unref() for it.
  static void describe(const Node& node, ActiveInfo& info) {
    if (static_cast<const ChildProcess*>(node.context)->is_orphan_) info.count = 0;
  }

  ~ChildProcess() = default;
  void on_exit();
  void on_loop_end();

  Child child_;
  Cleanup loop_ends_;
  LoopFunction<void(const Child& child)> callback_;
  const bool kills_;
  bool is_orphan_ = false;
};

// Owns processes without a handle. They are reaped, and do not keep the loop alive.
class Orphans final : public LoopLocal {
 public:
  // Returns the loop's Orphans, created on first use. nullptr when memory runs out.
  static Orphans* of(Loop& loop) { return local_of<Orphans>(loop); }
  explicit Orphans(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  void add(ChildProcess& process);
  // Deletes `process`.
  void remove(ChildProcess& process);

 private:
  bool open() override { return forked_.start(); }
  void on_loop_end() override { remove_all(); }
  void remove_all() {
    while (ChildProcess* process = processes_.first()) remove(*process);
  }

  Fork forked_{loop(), [this] { remove_all(); }};  // After a fork they are the parent's children.
  List<ChildProcess> processes_;
};

}  // namespace spate
