#include "core/signal_copies.h"

namespace spate {

namespace {

// Bit i says that signal kFirst + i stays unblocked. No other handler has this mask by chance.
constexpr int kFirst = 34;
constexpr int kLast = 64;
constexpr unsigned kUnblocked = 0x5ae1937c;

// No signal has this number.
constexpr int kIsRequest = -0x5ae1;

bool is_unblocked(int signum) {
  return signum >= kFirst && (kUnblocked >> (signum - kFirst) & 1) != 0;
}

}  // namespace

struct sigaction action_of_copy(SignalHandler handler) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigfillset(&action.sa_mask);
  for (int signum = kFirst; signum <= kLast; ++signum) {
    if (is_unblocked(signum)) sigdelset(&action.sa_mask, signum);
  }
  return action;
}

bool is_copy(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0) return false;
  for (int signum = kFirst; signum <= kLast; ++signum) {
    if ((sigismember(&action.sa_mask, signum) == 0) != is_unblocked(signum)) return false;
  }
  return true;
}

bool ask_copy(const struct sigaction& copy, int signum, CopyRequest& request) {
  siginfo_t info{};
  info.si_signo = kIsRequest;
  copy.sa_sigaction(signum, &info, &request);
  return request.is_done;
}

CopyRequest* request_in(const siginfo_t* info, void* context) {
  const bool is_request = info != nullptr && info->si_signo == kIsRequest;
  return is_request ? static_cast<CopyRequest*>(context) : nullptr;
}

}  // namespace spate
