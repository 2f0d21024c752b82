// Spawns a few processes and reports how each of them ended.
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "spate/child.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

int spawn_shell(const char* command) {
  char shell[] = "sh";
  char option[] = "-c";
  char* arguments[] = {shell, option, const_cast<char*>(command), nullptr};
  pid_t pid = -1;
  ::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, arguments, environ);
  return pid;
}

void report(const spate::Child& child) {
  if (child.exited()) {
    std::printf("process %d exited with %d\n", child.pid(), child.exit_code());
  } else {
    std::printf("process %d was ended by signal %d\n", child.pid(), child.term_signal());
  }
}

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::Loop::create().value();
  spate::Child succeeds{*loop, report};
  spate::Child fails{*loop, report};
  spate::Child hangs{*loop, report};

  if (succeeds.start(spawn_shell("exit 0")) || fails.start(spawn_shell("exit 3")) ||
      hangs.start(spawn_shell("exec sleep 60")))
    return 1;

  spate::Timer patience{*loop, [&hangs] { ::kill(hangs.pid(), SIGKILL); }};
  patience.start(100ms);
  loop->run();

  const bool as_expected = succeeds.exit_code() == 0 && fails.exit_code() == 3 &&
                           hangs.signaled() && hangs.term_signal() == SIGKILL;
  return as_expected ? 0 : 1;
}
