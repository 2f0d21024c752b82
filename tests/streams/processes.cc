// spawn(): the resources of a child process, its output, and its end.
#include "spate/net/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/listener.h"
#include "streams/harness.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class ProcessTest : public ::testing::Test {
 protected:
  // Runs a shell, with its output as a pipe unless `options` say otherwise.
  Process shell(const std::string& command, ProcessOptions options = {}) {
    options.file = "/bin/sh";
    options.arguments = {"-c", command};
    if (options.output.kind() == Stdio::Kind::inherit) options.output = Stdio::pipe();
    Result<Process> process = spawn(*loop_, options, note());
    EXPECT_TRUE(process);
    Process started = std::move(process).value_or(Process());
    if (options.output.kind() == Stdio::Kind::pipe) started.output.start(output_);
    return started;
  }
  Process::OnExit note() {
    return [this](const Child& child) {
      EXPECT_FALSE(status_.has_value());
      status_ = child.status();
      exit_code_ = child.exited() ? child.exit_code() : -child.term_signal();
    };
  }
  // Returns the output of a shell that runs `command`.
  std::string answer(const std::string& command, const ProcessOptions& options = {}) {
    const Process process = shell(command, options);
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    EXPECT_EQ(exit_code_, 0);
    return output_.received;
  }
  std::error_code error_of(const ProcessOptions& options) {
    const Result<Process> process = spawn(*loop_, options, note());
    EXPECT_FALSE(process);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // There is no child, running or exited.
    EXPECT_FALSE(loop_->run() || loop_->has_work());
    return process.error();
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  Recorder output_;
  std::optional<int> status_;
  int exit_code_ = -1000;
};

TEST_F(ProcessTest, ExitIsReportedOnce) {
  const Process process = shell("exit 7");
  EXPECT_TRUE(process.is_running());
  EXPECT_GT(process.pid(), 0);
  EXPECT_FALSE(status_.has_value());
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(exit_code_, 7);
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(::waitpid(process.pid(), nullptr, WNOHANG), -1);
}

TEST_F(ProcessTest, CommunicatesOverItsStreams) {
  Result<Process> cat =
      spawn(*loop_, {.file = "cat", .input = Stdio::pipe(), .output = Stdio::pipe()}, note());
  ASSERT_TRUE(cat);
  cat->output.start(output_);
  const std::string text = pattern(1'000'000);
  cat->input.write(text);
  cat->input.end();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_TRUE(output_.received == text);
  EXPECT_EQ(output_.log, "end closed ");
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(ProcessTest, ErrorsUseTheirOwnPipeOrThatOfOutput) {
  Recorder errors;
  Process apart = shell("echo out; echo err >&2", {.errors = Stdio::pipe()});
  apart.errors.start(errors);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(output_.received, "out\n");
  EXPECT_EQ(errors.received, "err\n");
  status_.reset();
  output_.received.clear();
  EXPECT_EQ(answer("echo out; echo err >&2", {.errors = Stdio::output()}), "out\nerr\n");
}

TEST_F(ProcessTest, NullIsEmptyAndDiscardsOutput) {
  EXPECT_EQ(answer("cat; echo x >&2; echo read", {.input = Stdio::null(), .errors = Stdio::null()}),
            "read\n");
}

TEST_F(ProcessTest, DescriptorIsDuplicatedForChild) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Process process = shell("echo there", {.output = Stdio::descriptor(ends[1])});
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  ::close(ends[1]);
  char bytes[16] = {};
  EXPECT_EQ(::read(ends[0], bytes, sizeof(bytes)), 6);
  EXPECT_EQ(::read(ends[0], bytes, sizeof(bytes)), 0);
  ::close(ends[0]);
}

TEST_F(ProcessTest, ListeningSocketsArePassedAsByServiceManager) {
  const int socket = must(Listener::open(Address::loopback_ipv4(0)));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDNAMES", "name", 1);
  const std::string command =
      "echo $LISTEN_FDS $SPATE_LISTEN_PARENT ${LISTEN_PID-unset} ${LISTEN_FDNAMES-unset} $HOME;"
      "readlink /proc/$$/fd/3 /proc/$$/fd/4; echo passed >&4; ls /proc/$$/fd | sort -n | tail -1";
  ::setenv("HOME", "/home", 1);
  const std::string answered =
      answer(command, {.listening = {socket}, .descriptors = {ends[1]}});
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDNAMES");
  const auto target = [](int fd) {
    char name[100] = {};
    EXPECT_GT(::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, 99), 0);
    return std::string(name) + '\n';
  };
  EXPECT_THAT(answered, ::testing::StartsWith("1 " + std::to_string(::getpid()) +
                                              " unset unset /home\n" + target(socket) +
                                              target(ends[1])));
  char bytes[16] = {};
  EXPECT_EQ(::read(ends[0], bytes, sizeof(bytes)), 7);
  for (const int fd : {socket, ends[0], ends[1]}) EXPECT_EQ(::close(fd), 0);
}

// The sources have the numbers of the targets, in another order.
TEST_F(ProcessTest, PassedDescriptorsMayBePermuted) {
  constexpr int kCount = 4;
  int saved[kCount];
  std::vector<int> order;
  int ends[kCount][2];
  for (auto& end : ends) ASSERT_EQ(::pipe2(end, O_CLOEXEC), 0);
  for (int i = 0; i < kCount; ++i) {
    for (int& fd : ends[i]) {  // Above the targets.
      const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);
      ::close(fd);
      fd = above;
    }
  }
  for (int i = 0; i < kCount; ++i) {
    saved[i] = ::fcntl(3 + i, F_DUPFD_CLOEXEC, 100);
    ASSERT_EQ(::dup3(ends[i][1], 3 + i, O_CLOEXEC), 3 + i);
    order.insert(order.begin(), 3 + i);
  }
  const Result<Process> process = spawn(
      *loop_,
      {.file = "/bin/sh",
       .arguments = {"-c", "for i in 3 4 5 6; do echo $i >&$i; done"},
       .descriptors = order},
      note());
  for (int i = 0; i < kCount; ++i) {
    if (saved[i] >= 0) ::dup2(saved[i], 3 + i);
    if (saved[i] < 0) ::close(3 + i);
    ::close(saved[i]);
  }
  ASSERT_TRUE(process) << process.error();
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(exit_code_, 0);
  for (int i = 0; i < kCount; ++i) {
    char byte = 0;
    EXPECT_EQ(::read(ends[i][0], &byte, 1), 1);
    EXPECT_EQ(byte, static_cast<char>('6' - i));
    ::close(ends[i][0]);
    ::close(ends[i][1]);
  }
}

TEST_F(ProcessTest, PassedDescriptorsMustBeOpen) {
  EXPECT_EQ(error_of({.file = "true", .listening = {9999}}), std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of({.file = "true", .descriptors = {-1}}), std::errc::bad_file_descriptor);
}

// Each of the three is at the number of another.
TEST_F(ProcessTest, StandardDescriptorsMayBePermuted) {
  const int saved = ::dup(1);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::dup2(ends[1], 1), 1);
  const Result<Process> process = spawn(*loop_,
                                        {.file = "/bin/sh",
                                         .arguments = {"-c", "echo to 2 >&2; echo to 1"},
                                         .output = Stdio::descriptor(2),
                                         .errors = Stdio::descriptor(1)},
                                        note());
  ::dup2(saved, 1);
  ::close(saved);
  ::close(ends[1]);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  char bytes[32] = {};
  EXPECT_EQ(::read(ends[0], bytes, sizeof(bytes)), 5);
  EXPECT_STREQ(bytes, "to 2\n");
  ::close(ends[0]);
}

TEST_F(ProcessTest, InheritsNoOtherDescriptors) {
  const int leaky = ::open("/dev/null", O_RDONLY);  // Without close-on-exec.
  const Process process = shell("for fd in /proc/self/fd/*; do echo ${fd##*/}; done",
                                {.input = Stdio::pipe(), .errors = Stdio::pipe()});
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  ::close(leaky);
  EXPECT_EQ(output_.received.find("0\n1\n2\n"), 0);
  EXPECT_LE(output_.received.size(), 8);  // The shell's own descriptor for the directory.
}

TEST_F(ProcessTest, UsesGivenEnvironmentAndDirectory) {
  EXPECT_EQ(answer("echo $GREETING $HOME; pwd",
                   {.environment = {{"GREETING=hello"}}, .directory = "/usr"}),
            "hello\n/usr\n");
}

TEST_F(ProcessTest, InheritsEnvironmentByDefault) {
  ::setenv("SPATE_GREETING", "inherited", 1);
  EXPECT_EQ(answer("echo $SPATE_GREETING"), "inherited\n");
  ::unsetenv("SPATE_GREETING");
}

TEST_F(ProcessTest, SignalsAreReset) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  const std::string signals = answer("grep -E 'Sig(Blk|Ign)' /proc/self/status");
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  unsigned long long mask = 1;
  unsigned long long ignored = 1;
  ASSERT_EQ(std::sscanf(signals.c_str(), "SigBlk: %llx SigIgn: %llx", &mask, &ignored), 2);
  EXPECT_EQ(mask, 0);
  EXPECT_EQ(ignored & 1ULL << (SIGPIPE - 1), 0);
}

TEST_F(ProcessTest, LeadsGroupOrSession) {
  Process grouped = shell("read line", {.input = Stdio::pipe(), .new_group = true});
  EXPECT_EQ(::getpgid(grouped.pid()), grouped.pid());
  EXPECT_EQ(::getsid(grouped.pid()), ::getsid(0));
  Result<Process> leader =
      spawn(*loop_, {.file = "sleep", .arguments = {"60"}, .new_group = true, .new_session = true},
            [](const Child&) {});
  ASSERT_TRUE(leader);
  EXPECT_EQ(::getsid(leader->pid()), leader->pid());
  EXPECT_EQ(::getpgid(leader->pid()), leader->pid());
  grouped.input.end();
  leader->kill(SIGKILL);
  EXPECT_FALSE(loop_->run() || loop_->has_work());
}

TEST_F(ProcessTest, ReceivesSignals) {
  Process process = shell("exec sleep 60");
  EXPECT_FALSE(process.kill(0));
  EXPECT_EQ(process.kill(-5), std::errc::invalid_argument);
  EXPECT_FALSE(process.kill(SIGTERM));
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(exit_code_, -SIGTERM);
  EXPECT_EQ(process.kill(SIGTERM), std::errc::no_such_process);
  EXPECT_EQ(Process().kill(SIGTERM), std::errc::no_such_process);
}

// ---- programs that cannot be started

TEST_F(ProcessTest, SpawnErrorsAreReportedAtOnce) {
  EXPECT_EQ(error_of({.file = "/no/such/program"}), std::errc::no_such_file_or_directory);
  EXPECT_EQ(error_of({.file = "no-such-program-anywhere"}), std::errc::no_such_file_or_directory);
  EXPECT_EQ(error_of({.file = "/etc/passwd"}), std::errc::permission_denied);
  EXPECT_EQ(error_of({.file = "true", .directory = "/no/such"}),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(error_of({.file = "true", .input = Stdio::descriptor(9999)}),
            std::errc::bad_file_descriptor);
}

TEST_F(ProcessTest, SpawnFailsWithoutDescriptors) {
  for (int nth = 1; nth <= 3; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::pipe, static_cast<std::uint64_t>(nth), EMFILE);
    const FaultScope scope(plan);
    EXPECT_EQ(error_of({.file = "true",
                        .input = Stdio::pipe(),
                        .output = Stdio::pipe(),
                        .errors = Stdio::pipe()}),
              std::errc::too_many_files_open);
  }
  FaultPlan plan;
  plan.fail_nth(SystemCall::spawn, 1, EAGAIN);
  const FaultScope scope(plan);
  EXPECT_EQ(error_of({.file = "true"}), std::errc::resource_unavailable_try_again);
}

TEST_F(ProcessTest, SpawnFailsWithoutMemory) {
  const ProcessOptions options{.file = "true",
                               .input = Stdio::pipe(),
                               .output = Stdio::pipe(),
                               .errors = Stdio::pipe()};
  int refused = 0;
  bool is_failed = true;
  for (std::uint64_t nth = 1; is_failed; ++nth) {
    ASSERT_LT(nth, 100u);
    loop_.reset();
    const std::vector<int> before = open_fds();
    loop_ = *Loop::create();
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
      std::optional<FaultScope> scope(plan);
      const Result<Process> process = spawn(*loop_, options, [](const Child&) {});
      scope.reset();
      is_failed = plan.failures(SystemCall::allocate) > 0;
      if (!process) {
        ++refused;
        EXPECT_EQ(process.error(), std::errc::not_enough_memory);
      }
      EXPECT_FALSE(loop_->run() || loop_->has_work());
      EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // None is left.
    }
    loop_.reset();
    EXPECT_EQ(open_fds(), before) << "allocation " << nth;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ProcessTest, ProcessThatCannotBeWatchedIsKilled) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::pidfd_open, 1, EMFILE);
  const FaultScope scope(plan);
  EXPECT_EQ(error_of({.file = "sleep", .arguments = {"60"}}), std::errc::too_many_files_open);
}

TEST_F(ProcessTest, ClosedStandardDescriptorsStayClosed) {
  const int pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    if (loop_->after_fork()) ::_exit(100);
    ::close(0);
    Result<Process> process = spawn(*loop_,
                                    {.file = "/bin/sh",
                                     .arguments = {"-c", "[ -e /proc/$$/fd/0 ] || echo closed"},
                                     .output = Stdio::pipe()},
                                    note());
    if (!process) ::_exit(101);
    process->output.start(output_);
    (void)loop_->run();
    ::_exit(output_.received == "closed\n" && exit_code_ == 0 ? 0 : 102);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// ---- order of destruction

bool is_there(int pid) { return ::kill(pid, 0) == 0; }

TEST_F(ProcessTest, ContinuesWithoutItsHandleAndIsReaped) {
  int input[2];
  int output[2];
  ASSERT_EQ(::pipe2(input, O_CLOEXEC) | ::pipe2(output, O_CLOEXEC), 0);
  int pid = -1;
  {
    const Process process = shell("read line; echo on", {.input = Stdio::descriptor(input[0]),
                                                         .output = Stdio::descriptor(output[1])});
    pid = process.pid();
  }
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(is_there(pid));
  for (const int fd : {input[0], input[1], output[1]}) ::close(fd);
  char text[8] = {};
  EXPECT_EQ(::read(output[0], text, sizeof(text)), 3);
  EXPECT_STREQ(text, "on\n");
  ::close(output[0]);
  run_until(*loop_, [pid] { return !is_there(pid); });
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_FALSE(status_.has_value());
}

TEST_F(ProcessTest, IsKilledWithItsHandleIfConfigured) {
  int pid = -1;
  {
    const Process process = shell("exec sleep 60", {.kill_when_destroyed = true});
    pid = process.pid();
  }
  run_until(*loop_, [pid] { return !is_there(pid); });
}

TEST_F(ProcessTest, CallbackMayDestroyProcess) {
  std::optional<Process> process;
  int code = -1;
  process =
      *spawn(*loop_, {.file = "/bin/sh", .arguments = {"-c", "exit 3"}}, [&](const Child& child) {
        process.reset();
        code = child.exit_code();
      });
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(code, 3);
}

TEST_F(ProcessTest, ErrorsAreDiscardedIfTheirOutputIsNotInherited) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const int output = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
  std::fflush(stdout);
  ::dup3(ends[0], 1, O_CLOEXEC);  // Simulates that it got the number 1.
  const Result<Process> process =
      spawn(*loop_,
            {.file = "/bin/sh",
             .arguments = {"-c", "[ ! -e /proc/$$/fd/2 ] && ! echo an error >&2"},
             .errors = Stdio::output()},
            note());
  ::dup2(output, 1);
  ::close(output);
  ASSERT_TRUE(process) << process.error().message();
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(exit_code_, 0);
  char byte;
  EXPECT_EQ(::read(ends[1], &byte, 1), -1) << "a stranger was sent something";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(ProcessTest, ExitedProcessMayBeDestroyedBeforeReport) {
  Process process = shell("exit 0");
  int status = 0;
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  const int pid = process.pid();
  process = Process();
  run_until(*loop_, [pid] { return !is_there(pid); });
  EXPECT_EQ(::waitpid(pid, &status, WNOHANG), -1);
  EXPECT_FALSE(status_.has_value());
}

TEST_F(ProcessTest, LoopMayBeDestroyedFirst) {
  Process process = shell("exec sleep 60");
  Process orphan = shell("exec sleep 60", {.kill_when_destroyed = true});
  const int pids[] = {process.pid(), orphan.pid()};
  orphan = Process();
  loop_.reset();
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(process.kill(SIGKILL), std::errc::no_such_process);
  for (const int pid : pids) {
    ::kill(pid, SIGKILL);
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
}

TEST_F(ProcessTest, IsKilledWithItsLoop) {
  Process process = shell("exec sleep 60", {.kill_when_destroyed = true});
  const int pid = process.pid();
  loop_.reset();
  process = Process();
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(ProcessTest, SurvivesLoopOfFork) {
  const Process process = shell("exec sleep 60", {.kill_when_destroyed = true});
  const pid_t fork = ::fork();
  if (fork == 0) {
    loop_.reset();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(fork, &status, 0), fork);
  ::kill(process.pid(), SIGTERM);
  EXPECT_EQ(::waitpid(process.pid(), &status, 0), process.pid());
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST_F(ProcessTest, SurvivesChildOfFork) {
  Process process = shell("exec sleep 60", {.kill_when_destroyed = true});
  Process orphan = shell("exec sleep 60");
  const int pids[] = {process.pid(), orphan.pid()};
  orphan = Process();
  const int pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    process = Process();
    if (loop_->after_fork() || loop_->run() || loop_->has_work()) ::_exit(1);
    ::_exit(loop_->active_count() == 0 ? 0 : 2);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  for (const int child : pids) {
    EXPECT_TRUE(is_there(child));
    ::kill(child, SIGTERM);
  }
  EXPECT_FALSE(loop_->run() || loop_->has_work());
  EXPECT_EQ(exit_code_, -SIGTERM);
  run_until(*loop_, [&pids] { return !is_there(pids[1]); });
}

}  // namespace
}  // namespace spate::testing
