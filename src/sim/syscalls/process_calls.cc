// The functions with which the library starts programs, waits for them and for signals (calls.txt).

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdarg>

#include "sim/kernel/kernel.h"
#include "sim/kernel/processes.h"
#include "sim/syscalls/returned.h"

namespace spate::sim {

namespace {

// Fills it as the kernel does; all zero if there is no change.
void describe(int pid, int status, siginfo_t& info) {
  info = {};
  if (status < 0) return;
  info.si_signo = SIGCHLD;
  info.si_pid = pid;
  if (WIFSTOPPED(status)) {
    info.si_code = CLD_STOPPED;
    info.si_status = WSTOPSIG(status);
  } else if (WIFCONTINUED(status)) {
    info.si_code = CLD_CONTINUED;
    info.si_status = SIGCONT;
  } else {
    info.si_code = WIFEXITED(status) ? CLD_EXITED : CLD_KILLED;
    info.si_status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  }
}

// Returns the status that waitid() reports with these options; -1: none.
int told(const Processes& processes, int pid, int options) {
  const long status = processes.status(pid);
  if (status >= 0) return (options & WEXITED) != 0 ? static_cast<int>(status) : -1;
  const int change = processes.change(pid);
  const int wanted = WIFSTOPPED(change) ? WSTOPPED : WCONTINUED;
  return (options & wanted) != 0 ? change : -1;
}

SpawnPlan* plan_of(const void* actions) {
  Kernel* kernel = Kernel::current();
  return kernel == nullptr ? nullptr : &kernel->processes.plans[actions];
}

}  // namespace

}  // namespace spate::sim

using spate::sim::Kernel;
using spate::sim::SpawnPlan;
namespace sim = spate::sim;

extern "C" {

int spate_sim_posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions) {
  return sim::plan_of(actions) != nullptr ? 0 : ::posix_spawn_file_actions_init(actions);
}

int spate_sim_posix_spawn_file_actions_destroy(posix_spawn_file_actions_t* actions) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::posix_spawn_file_actions_destroy(actions);
  kernel->processes.plans.erase(actions);
  return 0;
}

int spate_sim_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int source,
                                               int number) {
  SpawnPlan* plan = sim::plan_of(actions);
  if (plan == nullptr) return ::posix_spawn_file_actions_adddup2(actions, source, number);
  if (number >= 3) return ENOTSUP;
  // A source among 0 ... 2 is one set before: errors to the same file as the output.
  const bool is_own = source >= 0 && source < 3;
  plan->sources.at(static_cast<std::size_t>(number)) =
      is_own ? plan->sources.at(static_cast<std::size_t>(source)) : source;
  return 0;
}

int spate_sim_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int number,
                                               const char* path, int flags, mode_t mode) {
  SpawnPlan* plan = sim::plan_of(actions);
  if (plan == nullptr)
    return ::posix_spawn_file_actions_addopen(actions, number, path, flags, mode);
  plan->sources.at(static_cast<std::size_t>(number)) = SpawnPlan::kNone;
  return 0;
}

int spate_sim_posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions,
                                                   const char* path) {
  if (sim::plan_of(actions) != nullptr) return 0;
  return ::posix_spawn_file_actions_addchdir_np(actions, path);
}

int spate_sim_posix_spawn_file_actions_addclose(posix_spawn_file_actions_t* actions, int number) {
  SpawnPlan* plan = sim::plan_of(actions);
  if (plan == nullptr) return ::posix_spawn_file_actions_addclose(actions, number);
  plan->sources.at(static_cast<std::size_t>(number)) = SpawnPlan::kNone;
  return 0;
}

int spate_sim_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions,
                                                       int from) {
  if (sim::plan_of(actions) != nullptr) return 0;
  return ::posix_spawn_file_actions_addclosefrom_np(actions, from);
}

int spate_sim_posix_spawnp(pid_t* process, const char* file,
                           const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const* arguments,
                           char* const* environment) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr)
    return ::posix_spawnp(process, file, actions, attributes, arguments, environment);
  const long result = kernel->processes.spawn(file, arguments, *sim::plan_of(actions));
  if (result < 0) return static_cast<int>(-result);
  *process = static_cast<pid_t>(result);
  return 0;
}

int spate_sim_kill(pid_t process, int signum) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::kill(process, signum);
  return sim::returned_int(kernel->processes.kill(process, signum));
}

int spate_sim_waitid(idtype_t kind, id_t process, siginfo_t* info, int options) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::waitid(kind, process, info, options);
  const int pid = static_cast<int>(process);
  spate::sim::Processes& processes = kernel->processes;
  const long status = processes.status(pid);
  if (status == -ECHILD) return sim::returned_int(status);
  const int told = sim::told(processes, pid, options);
  sim::describe(pid, told, *info);
  if (told < 0 || (options & WNOWAIT) != 0) return 0;
  status >= 0 ? processes.reap(pid) : processes.forget_change(pid);
  return 0;
}

// Only used for a process that was just killed.
pid_t spate_sim_waitpid(pid_t process, int* status, int options) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::waitpid(process, status, options);
  const long found = kernel->processes.status(process);
  if (found < 0) return sim::returned_int(-ECHILD);
  if (status != nullptr) *status = static_cast<int>(found);
  kernel->processes.reap(process);
  return process;
}

// The system's signals do not reach a World. The action is only stored.
int spate_sim_sigaction(int signum, const struct sigaction* action, struct sigaction* before) {
  Kernel* kernel = Kernel::current();
  if (kernel == nullptr) return ::sigaction(signum, action, before);
  if (signum == SIGKILL || signum == SIGSTOP) return sim::returned_int(-EINVAL);
  struct sigaction& kept = kernel->signal_actions[signum];
  if (before != nullptr) *before = kept;
  if (action != nullptr) kept = *action;
  return 0;
}

}  // extern "C"
