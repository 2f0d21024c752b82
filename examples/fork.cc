// A loop that goes on, independently, in both the parent and the child of a fork.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

constexpr int kSuccess = 0;
constexpr int kFailure = 1;

struct Process {
  bool is_fork = false;
  int ticks = 0;

  void tick(spate::Timer& timer) {
    if (++ticks == 3) timer.stop();
  }
  void on_fork() { is_fork = true; }
};

int run_in_child(spate::Loop& loop, const Process& process) {
  if (loop.after_fork()) return kFailure;
  loop.run();
  return process.is_fork && process.ticks == 3 ? kSuccess : kFailure;
}

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  Process process;
  spate::Timer timer{*loop, spate::bind<&Process::tick>(&process)};
  timer.start(10ms, 10ms);
  spate::Fork fork_hook{*loop, spate::bind<&Process::on_fork>(&process)};
  fork_hook.start();

  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run_in_child(*loop, process));

  spate::Child child{*loop, [](spate::Child& self) {
                       std::printf("the child ended with %d\n", self.exit_code());
                     }};
  if (child.start(pid)) return kFailure;
  loop->run();
  std::printf("the parent had %d ticks\n", process.ticks);
  const bool as_expected = !process.is_fork && process.ticks == 3 && child.exit_code() == kSuccess;
  return as_expected ? kSuccess : kFailure;
}
