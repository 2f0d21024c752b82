#include "sys/process.h"

#include <pthread.h>

namespace spate::sys {

std::uint32_t forks = 0;

namespace {

[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

int changes(bool trace) { return WEXITED | (trace ? WSTOPPED | WCONTINUED : 0); }

// Returns the status as waitpid() does.
int status_of(const siginfo_t& info) {
  switch (info.si_code) {
    case CLD_EXITED:
      return (info.si_status & 0xff) << 8;
    case CLD_KILLED:
      return info.si_status & 0x7f;
    case CLD_DUMPED:
      return (info.si_status & 0x7f) | 0x80;
    case CLD_CONTINUED:
      return 0xffff;
    default:
      return ((info.si_status & 0xff) << 8) | 0x7f;  // CLD_STOPPED, CLD_TRAPPED
  }
}

}  // namespace

bool at_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return ::pthread_atfork(prepare, parent, child) == 0;
}

long see_child_change(int pid, bool trace, int& status) {
  if (const int error = injected(SystemCall::waitid)) return -error;
  siginfo_t info{};
  const int wanted = changes(trace) | WNOHANG | WNOWAIT;
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, wanted) < 0) return -errno;
  if (info.si_pid == 0) return 0;
  status = status_of(info);
  return 1;
}

void take_child_change(int pid, int status) {
  static_cast<void>(injected(SystemCall::waitid));  // Counted; it cannot fail.
  siginfo_t info{};
  const int seen = WIFSTOPPED(status) ? WSTOPPED : WIFCONTINUED(status) ? WCONTINUED : WEXITED;
  ::waitid(P_PID, static_cast<id_t>(pid), &info, seen | WNOHANG);
}

long check_child(int pid) {
  if (const int error = injected(SystemCall::waitid)) return -error;
  siginfo_t info{};
  return result_of(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT));
}

}  // namespace spate::sys
