// Child processes of a World's hosts: programs of the test, which end by exit() or by a signal.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/kernel/file.h"
#include "spate/sim/running.h"

namespace spate::sim {

class Kernel;

using ProgramBody = std::function<std::shared_ptr<void>(Running&)>;

// pidfd_open(2): readable when the process has ended.
class ProcessFile final : public File {
 public:
  std::uint32_t ready() const override { return has_ended ? EPOLLIN : 0u; }
  bool has_ended = false;
};

// The child's descriptors, as numbers of the parent, collected by posix_spawn()'s file actions.
struct SpawnPlan {
  static constexpr int kNone = -1;

  std::array<int, 3> sources{kNone, kNone, kNone};
};

class Processes {
 public:
  explicit Processes(Kernel& kernel) : kernel_(kernel) {}

  // By the file actions under construction.
  std::map<const void*, SpawnPlan> plans;

  void add_program(int host, const std::string& name, ProgramBody body) {
    programs_[{host, name}] = std::move(body);
  }

  // ---- called for the running host
  // Returns the process's number, or a negated errno.
  long spawn(const char* name, char* const* arguments, const SpawnPlan& plan);
  long kill(int pid, int signum);
  // Returns its status as waitpid() does, -EAGAIN while it lives, -ECHILD.
  long status(int pid) const;
  // Removes an ended process.
  void reap(int pid);
  // Returns an unreported stop or continuation in the encoding of waitpid(); -1 without one.
  int change(int pid) const;
  void forget_change(int pid);
  long open_file(int pid);

  bool is_stopped(int pid) const;
  void end(int pid, int status);
  void crash(int host);
  void clear() { processes_.clear(); }

 private:
  struct Process {
    int host;
    int status = -1;  // -1 while it runs.
    int change = -1;  // Not reported yet; -1: none.
    bool is_stopped = false;
    std::vector<int> pending{};  // Signals that wait for SIGCONT, each once.
    ProgramBody body;
    std::vector<std::string> arguments;
    std::array<std::shared_ptr<File>, 3> files;
    std::shared_ptr<ProcessFile> face = std::make_shared<ProcessFile>();
    std::unique_ptr<Running> running{};
    std::shared_ptr<void> kept{};  // Destroyed first.
  };

  Process* find(int pid);
  const Process* find(int pid) const;
  void begin(int pid);
  void stop(Process& process, int signum);
  void go_on(int pid, Process& process);
  long deliver(int pid, Process& process, int signum);
  Stream open(Loop& loop, std::shared_ptr<File>& file);
  void forget(int pid);

  Kernel& kernel_;
  std::map<std::pair<int, std::string>, ProgramBody> programs_;
  std::map<int, std::unique_ptr<Process>> processes_;
  std::map<int, std::unique_ptr<Process>> ended_;  // Reaped, and not yet destroyed.
  int last_pid_ = 1000;
};

}  // namespace spate::sim
