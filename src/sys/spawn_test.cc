#include "sys/spawn.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace spate::sys {
namespace {

// Where SIGCHLD is ignored, a child's number may belong to another process by the time it is ended.
TEST(EndChild, IgnoresProcessThatIsNotChild) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t stranger = ::fork();
    if (stranger == 0) {
      ::alarm(60);
      for (;;) ::pause();
    }
    ::_exit(::write(ends[1], &stranger, sizeof(stranger)) == sizeof(stranger) ? 0 : 1);
  }
  pid_t stranger = -1;
  ASSERT_EQ(::read(ends[0], &stranger, sizeof(stranger)), static_cast<long>(sizeof(stranger)));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[1]);
  end_child(stranger);
  pollfd ended{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 100), 0) << "it was killed, which closed the pipe";
  ::kill(stranger, SIGKILL);
  ::close(ends[0]);
}

TEST(EndChild, KillsAndReapsChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    for (;;) ::pause();
  }
  end_child(child);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace spate::sys
