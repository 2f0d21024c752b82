// Child processes of a World's hosts: programs of the test's, which end when they say so or are
// killed.
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

// pidfd_open(2): readable when its process has ended.
class ProcessFile final : public File {
 public:
  std::uint32_t ready() const override { return has_ended ? EPOLLIN : 0u; }
  bool has_ended = false;
};

// What posix_spawn() is told of the child's descriptors: numbers of the parent's.
struct SpawnPlan {
  static constexpr int kNone = -1;

  std::array<int, 3> sources{kNone, kNone, kNone};
};

class Processes {
 public:
  explicit Processes(Kernel& kernel) : kernel_(kernel) {}

  // By the actions that are being filled.
  std::map<const void*, SpawnPlan> plans;

  void add_program(int host, const std::string& name, ProgramBody body) {
    programs_[{host, name}] = std::move(body);
  }

  // Calls of the host whose code runs. A negated errno, or what is said.
  // The process's number.
  long spawn(const char* name, char* const* arguments, const SpawnPlan& plan);
  long kill(int pid, int signum);
  // Its status as of waitpid(), -EAGAIN while it lives, -ECHILD.
  long status(int pid) const;
  // It need not be remembered any more.
  void reap(int pid);
  // That it has been stopped or continued, as waitpid() says it; -1 if nobody has to be told.
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
    int status = -1;  // While it runs.
    int change = -1;  // Of which nobody has been told.
    bool is_stopped = false;
    std::vector<int> pending{};  // Signals that wait until it goes on, each once.
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
