#include "sim/kernel/processes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "sim/kernel/kernel.h"
#include "sim/kernel/signals.h"

namespace spate::sim {

namespace {

bool stops(int signum) {
  return signum == SIGSTOP || signum == SIGTSTP || signum == SIGTTIN || signum == SIGTTOU;
}
bool is_ignored(int signum) {
  return signum == SIGCHLD || signum == SIGCONT || signum == SIGURG || signum == SIGWINCH;
}

}  // namespace

bool Running::is_stopped() const { return processes_.is_stopped(pid_); }
void Running::end(int status) { processes_.end(pid_, status); }

Processes::Process* Processes::find(int pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : found->second.get();
}

const Processes::Process* Processes::find(int pid) const {
  const auto found = processes_.find(pid);
  const bool is_own = found != processes_.end() && found->second->host == kernel_.host;
  return is_own ? found->second.get() : nullptr;
}

// ---- begin

// The host's loop calls the program, after spawn() has returned.
long Processes::spawn(const char* name, char* const* arguments, const SpawnPlan& plan) {
  const auto program = programs_.find({kernel_.host, name});
  Loop* loop = kernel_.loop_of(kernel_.host);
  if (program == programs_.end() || loop == nullptr) return -ENOENT;
  auto made = std::make_unique<Process>(kernel_.host);
  made->body = program->second;
  for (; *arguments != nullptr; ++arguments) made->arguments.emplace_back(*arguments);
  for (std::size_t i = 0; i < plan.sources.size(); ++i)
    made->files[i] = kernel_.find(plan.sources[i]);
  const int pid = ++last_pid_;
  if (!loop->post([this, pid] { begin(pid); })) return -ENOMEM;
  processes_.emplace(pid, std::move(made));
  return pid;
}

void Processes::begin(int pid) {
  Process* process = find(pid);
  Loop* loop = process == nullptr ? nullptr : kernel_.loop_of(process->host);
  if (loop == nullptr || process->status >= 0) return;
  process->running.reset(new Running(*this, *loop, pid, process->arguments));
  Running& running = *process->running;
  running.input = open(*loop, process->files[0]);
  running.output = open(*loop, process->files[1]);
  running.errors = open(*loop, process->files[2]);
  std::shared_ptr<void> kept = process->body(running);
  if (process->status < 0) process->kept = std::move(kept);
}

Stream Processes::open(Loop& loop, std::shared_ptr<File>& file) {
  if (file == nullptr) return {};
  const int fd = kernel_.open_unlimited(std::exchange(file, nullptr));
  Result<Stream> stream = Stream::adopt(loop, fd);
  if (stream) return std::move(*stream);
  kernel_.close(fd);
  return {};
}

// ---- end

// The loop destroys its objects later, when none of its code is running.
void Processes::end(int pid, int status) {
  Process* process = find(pid);
  if (process == nullptr || process->status >= 0) return;
  process->status = status;
  for (std::shared_ptr<File>& file : process->files) file.reset();
  process->face->has_ended = true;
  process->face->changed();
  raise_signal(kernel_, process->host, SIGCHLD);
  Loop* loop = kernel_.loop_of(process->host);
  if (loop != nullptr) loop->post([this, pid] { forget(pid); });
}

void Processes::forget(int pid) {
  ended_.erase(pid);
  Process* process = find(pid);
  if (process == nullptr) return;
  process->kept.reset();
  process->running.reset();
}

void Processes::reap(int pid) {
  auto found = processes_.extract(pid);
  if (!found.empty() && found.mapped()->running != nullptr) ended_.insert(std::move(found));
}

void Processes::crash(int host) {
  const auto is_there = [host](const auto& one) { return one.second->host == host; };
  std::erase_if(processes_, is_there);
  std::erase_if(ended_, is_there);
}

// ---- called by the parent

long Processes::status(int pid) const {
  const Process* process = find(pid);
  if (process == nullptr) return -ECHILD;
  return process->status < 0 ? -EAGAIN : process->status;
}

long Processes::open_file(int pid) {
  const Process* process = std::as_const(*this).find(pid);
  return process == nullptr ? -ESRCH : kernel_.open(process->face);
}

int Processes::change(int pid) const {
  const Process* process = find(pid);
  return process == nullptr ? -1 : process->change;
}

void Processes::forget_change(int pid) {
  if (Process* process = find(pid)) process->change = -1;
}

// ---- signals

long Processes::kill(int pid, int signum) {
  if (std::as_const(*this).find(pid) == nullptr) return -ESRCH;
  if (signum < 0 || signum > SIGRTMAX) return -EINVAL;
  Process& process = *find(pid);
  if (signum == 0 || process.status >= 0) return 0;
  if (signum == SIGKILL) return end(pid, signum), 0;
  if (signum == SIGCONT) go_on(pid, process);
  if (!process.is_stopped) return deliver(pid, process, signum);
  const bool waits = std::ranges::find(process.pending, signum) != process.pending.end();
  if (signum != SIGSTOP && !waits) process.pending.push_back(signum);
  return 0;
}

long Processes::deliver(int pid, Process& process, int signum) {
  const bool is_handled = process.running != nullptr && process.running->handler_;
  if (signum == SIGSTOP || (!is_handled && stops(signum))) return stop(process, signum), 0;
  if (!is_handled && !is_ignored(signum)) return end(pid, signum), 0;
  if (!is_handled) return 0;
  const auto handle = [this, pid, signum] {
    const Process* alive = find(pid);
    if (alive != nullptr && alive->status < 0) alive->running->handler_(signum);
  };
  return kernel_.loop_of(process.host)->post(handle) ? 0 : -ENOMEM;
}

// In the encoding of waitpid().
void Processes::stop(Process& process, int signum) {
  constexpr int kStopped = 0x7f;
  process.is_stopped = true;
  process.change = signum << 8 | kStopped;
  raise_signal(kernel_, process.host, SIGCHLD);
}

void Processes::go_on(int pid, Process& process) {
  constexpr int kContinued = 0xffff;
  if (!std::exchange(process.is_stopped, false)) return;
  process.change = kContinued;
  raise_signal(kernel_, process.host, SIGCHLD);
  for (const int signum : std::exchange(process.pending, {})) {
    if (process.is_stopped) process.pending.push_back(signum);
    if (!process.is_stopped && process.status < 0) deliver(pid, process, signum);
  }
}

bool Processes::is_stopped(int pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() && found->second->is_stopped;
}

}  // namespace spate::sim
