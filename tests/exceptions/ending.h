// For tests of exceptions that end the program.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace spate::testing {

inline std::string read_all(int fd) {
  std::string all;
  char bytes[512];
  for (ssize_t size; (size = ::read(fd, bytes, sizeof(bytes))) > 0;)
    all.append(bytes, static_cast<std::size_t>(size));
  return all;
}

// Calls `function` in a child process. Returns true if an exception of the test then leaves the
// callback `whose`, prints the line that names it, and ends the process. Prints the output of the
// child otherwise. `function` should not return.
template <class Function>
bool exception_ends(const std::string& whose, Function function) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const int pid = ::fork();
  if (pid == 0) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], STDERR_FILENO);
    function();
    ::_exit(1);
  }
  ::close(ends[1]);
  const std::string said = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  const bool is_right = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                        said.starts_with("spate: an exception left a callback: " + whose + "\n") &&
                        said.find("thrown by the test") != std::string::npos;
  if (!is_right) std::printf("%s: status %x, and:\n%s\n", whose.c_str(), status, said.c_str());
  return is_right;
}

}  // namespace spate::testing
