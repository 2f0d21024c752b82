// Tests how a compiler treats coroutines: everyday patterns, each run to its end and destroyed at
// each of its waits. Compares the outcomes with those recorded for the known compilers. An entry
// that is no longer true fails, whichever side has changed.
//
//   coroutine_patterns gcc12|clang19 [PATTERN]
//
// The rules for users are in docs/guide/coroutine-compilers.md, and tools/coro_lint.py enforces
// them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "harness.h"

using namespace patterns;

namespace {

constexpr const char* kNames[] = {"ok", "broken", "destroyed twice", "leak"};

// Opens gates until the coroutine ends, or `most` of them. Returns false if it has ended.
bool open_gates(const Task<int>& task, int most) {
  for (int i = 0; i < most && !task.done() && waiting; ++i) std::exchange(waiting, {}).resume();
  return !task.done();
}

// Destroys the coroutine at each gate in turn, then runs it to its end. Returns whether the result
// was right.
bool play(const Pattern& pattern) {
  for (int gates = 0;; ++gates) {
    rounds = 0;
    waiting = {};
    Task<int> task = pattern.make();
    task.start();
    if (!open_gates(task, gates)) return task.take() == 7;
    if (!waiting) return false;
  }
}

Outcome judge(const Pattern& pattern) {
  const bool is_right = play(pattern);
  if (Counted::destroyed_twice > 0) return Outcome::twice;
  if (!Counted::alive.empty()) return Outcome::leak;
  return is_right ? Outcome::ok : Outcome::broken;
}

// Runs the pattern in a child process, because it may crash.
Outcome outcome_of(const Pattern& pattern) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::alarm(60);
    ::_exit(static_cast<int>(judge(pattern)));
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return Outcome::broken;
  const bool has_exited = WIFEXITED(status) && WEXITSTATUS(status) < std::ssize(kNames);
  return has_exited ? static_cast<Outcome>(WEXITSTATUS(status)) : Outcome::broken;
}

bool is_as_expected(const Pattern& pattern, Outcome expected) {
  const Outcome outcome = outcome_of(pattern);
  std::printf("%-36s %s", pattern.name, kNames[static_cast<int>(outcome)]);
  if (outcome != expected) std::printf("; expected: %s", kNames[static_cast<int>(expected)]);
  std::puts("");
  return outcome == expected;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view compiler = count > 1 ? arguments[1] : "";
  const std::string_view only = count > 2 ? arguments[2] : "";
  if (compiler != "gcc12" && compiler != "clang19") {
    std::fputs("usage: coroutine_patterns gcc12|clang19 [PATTERN]\n", stderr);
    return 2;
  }
  int tried = 0;
  int surprises = 0;
  for (const auto patterns : {kControlFlow, kExpressions, kLifetimes, kGenerators}) {
    for (const Pattern& pattern : patterns) {
      if (!only.empty() && only != pattern.name) continue;
      const Outcome expected = compiler == "gcc12" ? pattern.gcc12 : pattern.clang19;
      ++tried;
      if (!is_as_expected(pattern, expected)) ++surprises;
    }
  }
  std::printf("%d patterns, %d surprises\n", tried, surprises);
  return surprises == 0 && tried > 0 ? 0 : 1;
}
