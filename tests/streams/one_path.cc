// Several processes that start a server at one unix path at once.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "spate/net/listener.h"
#include "streams/harness.h"
#include "sys/socket.h"
#include "tests/support/sanitizers.h"

namespace spate::testing {
namespace {

struct Start {
  int processes;
  bool stale;  // The socket file of an ended server is at the path.
};

void PrintTo(const Start& start, std::ostream* out) {
  *out << start.processes << (start.stale ? "_on_a_stale_path" : "_on_a_fresh_path");
}

// Counted by all processes.
struct Counts {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<int> listening{0};
  std::atomic<int> refused{0};
  std::atomic<int> failed{0};  // With another error.

  int decided() const { return listening + refused + failed; }
};

class OnePath : public ::testing::TestWithParam<Start> {
 protected:
  OnePath() {
    void* shared =
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(shared, MAP_FAILED);
    shared_ = shared;
  }
  ~OnePath() override {
    end_children();
    ::munmap(shared_, sizeof(Counts));
    std::remove(path_.c_str());
  }

  // Starts the processes, and returns when each has listened or failed.
  void start_all() {
    counts_ = new (shared_) Counts;
    std::remove(path_.c_str());
    if (GetParam().stale) leave_a_file();
    for (int i = 0; i < GetParam().processes; ++i) {
      const pid_t child = ::fork();
      if (child == 0) serve();
      ASSERT_GT(child, 0);
      children_.push_back(child);
    }
    await([this] { return counts_->ready == GetParam().processes; });
    counts_->go = true;
    await([this] { return counts_->decided() == GetParam().processes; });
  }
  // Returns the text that the server at the path sends.
  std::string text_of_the_server() const {
    const sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (sys::connect(socket.get(), address_.data(), address_.size()) != 0) return "unreachable";
    char text[16] = {};
    return sys::read(socket.get(), text, sizeof(text) - 1) < 0 ? "broken" : text;
  }
  // Returns the number of children that ended by themselves without an error.
  int ended_well() {
    int count = 0;
    for (const pid_t child : children_) {
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      if (status == 0) ++count;
    }
    children_.clear();
    return count;
  }

  Counts* counts_ = nullptr;

 private:
  void leave_a_file() const {
    const sys::Descriptor stale(sys::open_socket(AF_UNIX, SOCK_STREAM));
    ASSERT_EQ(sys::bind(stale.get(), address_.data(), address_.size()), 0);
    ASSERT_EQ(sys::listen(stale.get(), 1), 0);
  }
  // Runs in a child: listens, and serves one connection.
  [[noreturn]] void serve() const {
    ::alarm(60);
    const auto loop = must(Loop::create());
    ++counts_->ready;
    while (!counts_->go) ::sched_yield();
    const Result<Listener> listener =
        Listener::create(*loop, address_, [&loop](Stream stream, const Address&) {
          stream.write("served");
          stream.close();
          loop->stop();
        });
    if (!listener) {
      ++(listener.error() == std::errc::address_in_use ? counts_->refused : counts_->failed);
      ::_exit(0);
    }
    ++counts_->listening;
    ::_exit(loop->run() ? 1 : 0);
  }
  template <class Condition>
  static void await(Condition holds) {
    const auto begin = std::chrono::steady_clock::now();
    while (!holds() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
      ::sched_yield();
  }
  void end_children() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  const std::string path_ = "spate_one_path_" + std::to_string(::getpid()) + ".sock";
  const Address address_ = must(Address::path(path_));
  void* shared_ = nullptr;
  std::vector<pid_t> children_;
};

INSTANTIATE_TEST_SUITE_P(Processes, OnePath,
                         ::testing::Values(Start{2, false}, Start{2, true}, Start{8, false},
                                           Start{8, true}),
                         ::testing::PrintToStringParamName());

// Two listened, and one of them was unreachable.
TEST_P(OnePath, HasExactlyOneServer) {
  constexpr int kRounds = kIsSanitized ? 15 : 150;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    start_all();
    ASSERT_EQ(counts_->listening, 1);
    ASSERT_EQ(counts_->failed, 0);
    ASSERT_EQ(counts_->refused, GetParam().processes - 1);
    ASSERT_EQ(text_of_the_server(), "served");
    ASSERT_EQ(ended_well(), GetParam().processes);
  }
}

}  // namespace
}  // namespace spate::testing
