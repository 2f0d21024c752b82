#include "chaos/runner.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "chaos/verdict.h"
#include "chaos/world.h"
#include "sim/explore/shrink.h"
#include "support/sanitizers.h"

#ifdef SPATE_TEST_FINDS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif
#ifdef SPATE_TEST_SANITIZED
#include <sanitizer/allocator_interface.h>
#endif

namespace spate::chaos {

namespace {

constexpr int kFailed = 67;  // The exit status of a child that called fail().
// Limits of one program: processor time, and elapsed time on a busy machine.
constexpr unsigned kMaxSeconds = testing::kIsSanitized ? 20 : 4;
constexpr unsigned kMaxSecondsAsleep = 30 * kMaxSeconds;
constexpr int kMaxFds = 400;
constexpr std::size_t kShrinkRuns = 2'000;  // Programs that are run to remove steps of one.

// The report that a child leaves, however it ends.
struct Report {
  std::uint64_t seed;
  char promise[40];
  char how[512];
  Coverage coverage;
};

Report* shared_report() {
  static void* memory =
      ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return static_cast<Report*>(memory);
}

void note_failure(const char* promise, const char* how) {
  Report* report = shared_report();
  std::strncpy(report->promise, promise, sizeof(report->promise) - 1);
  std::strncpy(report->how, how, sizeof(report->how) - 1);
  std::fflush(nullptr);
  ::_exit(kFailed);
}

// Returns how many of the first few hundred descriptors are open.
int count_fds() {
  pollfd fds[kMaxFds];
  for (int i = 0; i < kMaxFds; ++i) fds[i] = {.fd = i, .events = 0, .revents = 0};
  ::poll(fds, kMaxFds, 0);
  int open = 0;
  for (const pollfd& one : fds) open += (one.revents & POLLNVAL) == 0 ? 1 : 0;
  return open;
}

bool has_leak() {
#ifdef SPATE_TEST_FINDS_LEAKS
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

// Bytes that are allocated. The allocator of a sanitizer is its own.
std::size_t used_memory() {
#ifdef SPATE_TEST_SANITIZED
  return __sanitizer_get_current_allocated_bytes();
#else
  return ::mallinfo2().uordblks;
#endif
}

Program program_of(std::uint64_t seed) {
  Tape tape(seed);
  return make_program(tape);
}

// Runs a program in a child. Returns the broken promise, or "".
std::string in_child(const std::function<void()>& work, bool is_silent) {
  Report* report = shared_report();
  report->promise[0] = report->how[0] = 0;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    set_on_failure(note_failure);
    if (is_silent) {
      const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      ::dup2(nowhere, 2);
      ::close(nowhere);
    }
    work();
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (report->promise[0] != 0) return report->promise;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM || signal == SIGPROF) return "hang";
  return "crash";
}

// Prints the trace of programs that pass, too.
bool is_told() { return std::getenv("SPATE_CHAOS_TELL") != nullptr; }

void limit_time(bool on) {
  itimerval limit{};
  limit.it_value.tv_sec = on ? kMaxSeconds : 0;
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(on ? kMaxSecondsAsleep : 0);
}

void run_all(const Batch& batch, bool looks_for_leaks) {
  Report* report = shared_report();
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    report->seed = batch.first + i;
    limit_time(true);
    run_program(program_of(batch.first + i), batch.backend, &report->coverage, is_told());
  }
  limit_time(false);
  if (looks_for_leaks && has_leak()) fail("leak", "memory is lost in one of the seeds");
}

void run_alone(const Program& program, std::string_view backend, bool is_told) {
  limit_time(true);
  run_program(program, backend, nullptr, is_told);
  limit_time(false);
  if (has_leak()) fail("leak", "memory is lost");
}

bool fails_alike(const Program& program, std::string_view backend, const std::string& promise) {
  return in_child([&] { run_alone(program, backend, false); }, true) == promise;
}

Program with_steps(const Program& program, const sim::Numbers& kept) {
  Program part = program;
  part.steps.clear();
  for (const std::uint64_t number : kept) part.steps.push_back(program.steps[number]);
  return part;
}

// Makes the numbers of each step as small as possible.
void shrink_numbers(Program& program, const std::function<bool(const Program&)>& fails) {
  for (Step& step : program.steps) {
    for (std::uint32_t Step::* number : {&Step::a, &Step::b}) {
      const std::uint32_t before = step.*number;
      for (const std::uint32_t smaller : {0u, before % 16}) {
        step.*number = smaller;
        if (smaller == before || fails(program)) break;
        step.*number = before;
      }
    }
  }
}

// Removes as many steps as possible.
Program shrink(Program program, std::string_view backend, const std::string& promise) {
  const auto fails = [&](const Program& candidate) {
    return fails_alike(candidate, backend, promise);
  };
  Program calm = program;
  calm.weather = Weather::fair;
  if (fails(calm)) program = calm;
  sim::Numbers all(program.steps.size());
  std::iota(all.begin(), all.end(), 0);
  const sim::Numbers needed = sim::shrink(
      all, [&](const sim::Numbers& kept) { return fails(with_steps(program, kept)); }, kShrinkRuns);
  program = with_steps(program, needed);
  shrink_numbers(program, fails);
  return program;
}

void print_failure(const Batch& batch, std::uint64_t seed, const std::string& promise) {
  const Report* report = shared_report();
  std::printf("chaos: seed %llu on %s: %s: %s\n", static_cast<unsigned long long>(seed),
              batch.backend.data(), promise.c_str(), report->how);
  const char* without = std::getenv("SPATE_CHAOS_WITHOUT");
  std::printf("repeat it: %s%s%sSPATE_SEED=%llu SPATE_CHAOS_BACKEND=%s <chaos_tests>\n",
              without == nullptr ? "" : "SPATE_CHAOS_WITHOUT=", without == nullptr ? "" : without,
              without == nullptr ? "" : " ", static_cast<unsigned long long>(seed),
              batch.backend.data());
  std::fflush(stdout);
  const Program whole = program_of(seed);
  if (!fails_alike(whole, batch.backend, promise)) {
    std::printf("it does not fail alone, when this happens:\n");
    std::fflush(stdout);
    in_child([&] { run_alone(whole, batch.backend, true); }, false);
    return;
  }
  const Program least = shrink(whole, batch.backend, promise);
  std::printf("%zu steps of %zu are enough%s%s:\n", least.steps.size(), whole.steps.size(),
              least.weather == Weather::fair    ? ""
              : least.weather == Weather::gusty ? ", in gusty weather"
                                                : ", in stormy weather",
              least.loop_goes_first ? ", and the loop goes first" : "");
  for (const Step& step : least.steps) std::printf("  %s\n", to_string(step).c_str());
  std::printf("what happens:\n");
  std::fflush(stdout);
  in_child([&] { run_alone(least, batch.backend, true); }, false);
  std::printf("%s: %s\n", promise.c_str(), report->how);
  std::fflush(stdout);
}

}  // namespace

void run_program(const Program& program, std::string_view backend, Coverage* coverage,
                 bool is_told) {
  prepare_links();
  prepare_files();
  prepare_certificates();
  const int fds = count_fds();
  {
    World world({.backend = backend, .coverage = coverage, .is_told = is_told});
    world.run(program);
  }
  check(count_fds() == fds, "descriptors_return", "%d open before, %d after", fds, count_fds());
}

std::vector<std::size_t> repeat_program(const Program& program, std::string_view backend,
                                        std::size_t count) {
  prepare_links();
  prepare_files();
  prepare_certificates();
  Ground ground(backend);
  ground.use_all_buckets();
  std::vector<std::size_t> used(count);
  for (std::size_t& each : used) {
    {
      World world({.backend = backend, .ground = &ground});
      world.run(program);
    }
    each = used_memory();
  }
  return used;
}

bool survey(const Batch& batch) {
  struct Found {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
    std::string how;
  };
  std::map<std::string, Found> found;
  Report* report = shared_report();
  Batch rest = batch;
  while (rest.count > 0) {
    const std::string promise = in_child([&] { run_all(rest, false); }, true);
    if (promise.empty()) break;
    Found& one = found[promise];
    if (one.count++ == 0) {
      one.first = report->seed;
      one.how = report->how;
    }
    const std::uint64_t done = report->seed + 1 - rest.first;
    rest.first += done;
    rest.count -= done;
  }
  for (const auto& [promise, one] : found) {
    std::printf("%8llu  first %-8llu %s: %s\n", static_cast<unsigned long long>(one.count),
                static_cast<unsigned long long>(one.first), promise.c_str(), one.how.c_str());
  }
  return found.empty();
}

bool run_batch(const Batch& batch, Coverage* coverage) {
  Report* report = shared_report();
  std::memset(report, 0, sizeof(*report));
  const std::string promise = in_child([&] { run_all(batch, true); }, !is_told());
  if (coverage != nullptr) coverage->add(report->coverage);
  if (promise.empty()) return true;
  if (promise != "leak") return print_failure(batch, report->seed, promise), false;
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    const std::uint64_t seed = batch.first + i;
    if (fails_alike(program_of(seed), batch.backend, promise))
      return print_failure(batch, seed, promise), false;
  }
  std::printf("chaos: a leak in seeds %llu and following, by none alone\n",
              static_cast<unsigned long long>(batch.first));
  return false;
}

}  // namespace spate::chaos
