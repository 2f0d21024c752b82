// Turns the fault seam of src/sys on in a drop-in library, which no test can reach from outside:
// the environment says so. Compiled into the libraries of lib-faults only.
//
//   SPATE_FAULT_SEED     installs the plan
//   SPATE_FAULT_SHARE    how many of the calls fail, 0 to 1; 0.05 if not given
//   SPATE_FAULT_REPORT   the file to which a process that exits appends "<call> <made> <failed>"
//
// Only failures that the kernel may answer with at any time, and that must cost nothing: a wait
// that is interrupted, an own descriptor that turns out to be empty, an interrupted wake-up.
// tests/faults covers failures for lack of memory or descriptors.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "src/base/fault.h"

namespace {

using spate::FaultPlan;
using spate::SystemCall;

// Never destroyed: other threads may still be in the library while the process exits.
alignas(FaultPlan) unsigned char storage[sizeof(FaultPlan)];
FaultPlan* plan = nullptr;

double share_from_environment() {
  const char* text = std::getenv("SPATE_FAULT_SHARE");
  return text == nullptr ? 0.05 : std::strtod(text, nullptr);
}

[[gnu::constructor]] void install() {
  const char* seed_text = std::getenv("SPATE_FAULT_SEED");
  if (seed_text == nullptr) return;
  const std::uint64_t seed = std::strtoull(seed_text, nullptr, 10);
  const double share = share_from_environment();
  plan = new (storage) FaultPlan;
  plan->fail_share(SystemCall::epoll_wait, share, EINTR, seed)
      .fail_share(SystemCall::poll, share, EINTR, seed)
      .fail_share(SystemCall::select, share, EINTR, seed)
      .fail_share(SystemCall::read, share / 2, EINTR, seed)
      .fail_share(SystemCall::read, share / 2, EAGAIN, seed + 1)
      .fail_share(SystemCall::write, share, EINTR, seed);
  spate::installed_plan.store(plan, std::memory_order_release);
}

struct Line {
  SystemCall call;
  const char* name;
};
constexpr Line kLines[] = {{SystemCall::epoll_wait, "epoll_wait"},
                           {SystemCall::poll, "poll"},
                           {SystemCall::select, "select"},
                           {SystemCall::read, "read"},
                           {SystemCall::write, "write"}};

// Writes each line with one write(), so that lines of processes that share the file do not mix.
[[gnu::destructor]] void report() {
  const char* path = std::getenv("SPATE_FAULT_REPORT");
  if (plan == nullptr || path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  for (const Line& line : kLines) {
    if (plan->calls(line.call) == 0) continue;
    char text[100];
    const int length = std::snprintf(text, sizeof(text), "%s %llu %llu\n", line.name,
                                     static_cast<unsigned long long>(plan->calls(line.call)),
                                     static_cast<unsigned long long>(plan->failures(line.call)));
    if (::write(file, text, static_cast<std::size_t>(length)) < 0) break;
  }
  ::close(file);
}

}  // namespace
