// Shared by the conformance tests: a fixture for each backend, and watchers that count their calls.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "spate/async.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "system/interruption.h"
#include "system/sleeping.h"
#include "tests/support/backends.h"
#include "tests/support/descriptors.h"
#include "tests/support/make_loop.h"
#include "tests/support/running.h"
#include "tests/support/scripted.h"

namespace spate::testing {

using namespace std::chrono_literals;

inline constexpr Events kReadWrite = Events::read | Events::write;

// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_TRUE(open_pipe(ends));
    read_end = Fd(ends[0]);
    write_end = Fd(ends[1]);
  }
  int in() const { return read_end.get(); }
  int out() const { return write_end.get(); }
  void fill() const { EXPECT_EQ(::write(out(), "x", 1), 1); }
  void drain() const {
    char bytes[64];
    while (::read(in(), bytes, sizeof(bytes)) > 0) {
    }
  }

  Fd read_end;
  Fd write_end;
};

// Two ends of a stream socket.
struct Sockets {
  explicit Sockets(bool tcp = false) { tcp ? connect_tcp() : connect_unix(); }
  int near() const { return near_end.get(); }
  int far() const { return far_end.get(); }

  Fd near_end;
  Fd far_end;

 private:
  void connect_unix() {
    int ends[2] = {-1, -1};
    EXPECT_TRUE(open_socket_pair(ends));
    near_end = Fd(ends[0]);
    far_end = Fd(ends[1]);
  }
  void connect_tcp() {
    const Fd listener(closing_on_exec(::socket(AF_INET, SOCK_STREAM, 0)));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &size), 0);
    near_end = Fd(closing_on_exec(::socket(AF_INET, SOCK_STREAM, 0)));
    EXPECT_EQ(::connect(near_end.get(), generic, size), 0);
    far_end = Fd(closing_on_exec(::accept(listener.get(), nullptr, nullptr)));
    nonblocking(near_end.get());
  }
};

// A directory that is deleted with its contents.
class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "spate_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Appends to a file, which changes its size.
  void append(std::string_view name) const {
    const Fd fd(::open(file(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    EXPECT_EQ(::write(fd.get(), "x", 1), 1);
  }

 private:
  std::string path_;
};

// A watcher that counts its calls, remembers the last, may append its name to a log, and calls
// `then` if that is set.
template <class W>
struct Probe {
  template <class... Args>
  explicit Probe(Loop& loop, Args... args) : watcher(loop, args..., bind<&Probe::on_event>(this)) {}

  // Appends `name` to `to` with each call.
  Probe& note(std::string& to, char called) {
    log = &to;
    name = called;
    return *this;
  }
  W* operator->() { return &watcher; }

  void on_event(Events seen) {
    ++calls;
    events = seen;
    if (log != nullptr) *log += name;
    if (!then) return;
    const std::function<void()> action = then;  // It may destroy this probe.
    action();
  }

  W watcher;
  int calls = 0;
  Events events = Events::none;
  std::function<void()> then;
  std::string* log = nullptr;
  char name = '?';
};

// Turns the loop until `done` returns true, for `patience` at most. An idle loop does not end this.
template <class Done>
bool run_until(Loop& loop, Done done, Nanos patience = 5s) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  Timer look_again{loop, [] {}};
  if (!look_again.start(5ms, 5ms)) return false;
  while (!done()) {
    if (loop.run(Run::once)) return false;
    if (std::chrono::steady_clock::now() > limit) return done();
  }
  return true;
}

inline void turn(Loop& loop, int times = 1) {
  for (; times > 0; --times) EXPECT_FALSE(loop.run(Run::no_wait));
}

// A test that runs once for each backend, each time on a new loop.
class OnEveryBackend : public ::testing::TestWithParam<std::string_view> {
 protected:
  ~OnEveryBackend() override {
    loop_.reset();
    if (backend() == "io_uring") await_interruption();
  }
  std::string_view backend() const { return GetParam(); }
  bool has_kernel_set() const { return uses_kernel_set(backend()); }
  bool is_select() const { return uses_select(backend()); }

  // Turns until nothing keeps the loop alive; fails after five seconds.
  void run() {
    EXPECT_TRUE(run_until(*loop_, [this] { return loop_->active_count() <= 1; }));
  }
  void turn(int times = 1) { testing::turn(*loop_, times); }
  std::uint64_t modifies() const { return loop_->metrics().kernel_calls.modify; }

  std::unique_ptr<Loop> loop_ = make_loop(GetParam());
  std::string log_;
};

#ifndef SPATE_TEST_BACKENDS
#define SPATE_TEST_BACKENDS backends_here()
#endif
#define SPATE_ON_EVERY_BACKEND(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(EveryBackend, suite, ::testing::ValuesIn(SPATE_TEST_BACKENDS), \
                           backend_test_name)
#define SPATE_ON_BACKENDS_WHERE(suite, holds)                                               \
  INSTANTIATE_TEST_SUITE_P(EveryBackend, suite, backends_where(SPATE_TEST_BACKENDS, holds), \
                           backend_test_name)

// ---- processes

// Forks; the child exits with the result of `body`.
template <class Body>
int fork_child(Body body) {
  const int pid = ::fork();
  if (pid == 0) ::_exit(body());
  EXPECT_GT(pid, 0);
  return pid;
}

// Returns the exit code of a child, or minus the signal that ended it.
inline int wait_for(int pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Calls a function on another thread as soon as the calling one sleeps.
template <class Action>
std::thread when_asleep(Action action) {
  return std::thread([action, sleeper = this_thread()] {
    await_sleep(sleeper);
    action();
  });
}

// Calls `action`, which is to wake the loop, on another thread while run(Run::once) sleeps. Repeats
// it if the wait has ended early: closing the ring of an earlier test interrupts this thread.
template <class Action>
void wake_by(Loop& loop, Action action) {
  for (int tries = 0; tries < 10 && loop.metrics().wakeups == 0; ++tries) {
    EXPECT_FALSE(loop.run(Run::no_wait));  // Takes a wake-up that came after the sleep.
    std::thread thread = when_asleep(action);
    EXPECT_FALSE(loop.run(Run::once));
    thread.join();
  }
  EXPECT_EQ(loop.metrics().wakeups, 1u);
}

// Waits until the child has exited, without reaping it.
inline void await_end(int pid) {
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
}

// A child that does nothing until it is killed, or its parent exits.
inline int fork_sleeper() {
  return fork_child([parent = ::getpid()] {
    while (::getppid() == parent) ::usleep(50'000);
    return 0;
  });
}

}  // namespace spate::testing
