// A forked child that destroys its objects, Streams first and then the loop, as C++ orders it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <list>
#include <memory>
#include <optional>

#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/relay.h"
#include "spate/net/server.h"
#include "streams/harness.h"
#include "support/slow_disk.h"

namespace spate::testing {
namespace {

enum class InTheChild { streams_go_first, loop_goes_first, loop_goes_on };

void PrintTo(InTheChild order, std::ostream* out) {
  constexpr const char* kNames[] = {"streams_go_first", "loop_goes_first", "loop_goes_on"};
  *out << kNames[static_cast<std::size_t>(order)];
}

class ForkedStreams : public ::testing::TestWithParam<InTheChild> {
 protected:
  // Ends the child. `let_go` destroys everything that has Streams.
  template <class LetGo>
  [[noreturn]] static void leave(std::unique_ptr<Loop>& loop, LetGo let_go) {
    ::alarm(60);
    const bool goes_on = GetParam() == InTheChild::loop_goes_on;
    if (goes_on && loop->after_fork()) ::_exit(1);
    if (GetParam() == InTheChild::loop_goes_first) loop.reset();
    let_go();
    if (goes_on) loop->run_for(std::chrono::milliseconds(20));
    const bool has_work = goes_on && loop->has_work();
    loop.reset();
    ::_exit(has_work ? 2 : 0);
  }
};

INSTANTIATE_TEST_SUITE_P(InTheChild, ForkedStreams,
                         ::testing::Values(InTheChild::streams_go_first,
                                           InTheChild::loop_goes_first, InTheChild::loop_goes_on),
                         ::testing::PrintToStringParamName());

// The child's destructors sent close_notify to the parent's peers, or reset their connections.
TEST_P(ForkedStreams, LeaveParentConnectionsUnaffected) {
  auto loop = std::move(*Loop::create());
  auto pair = std::move(*Stream::socket_pair(*loop));
  auto busy = std::move(*make_pair(*loop, Kind::tcp));
  Recorder log;
  Recorder busy_log;
  pair.second.start(log);
  busy.second.start(busy_log);
  busy.second.pause();
  const std::string queued = pattern(8'000'000);
  EXPECT_TRUE(busy.first.write(queued));
  const pid_t pid = ::fork();
  if (pid == 0) {
    leave(loop, [&] {
      pair = decltype(pair)();
      busy = decltype(busy)();
    });
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  linger lingers{};
  socklen_t size = sizeof(lingers);
  ASSERT_EQ(::getsockopt(busy.first.fd(), SOL_SOCKET, SO_LINGER, &lingers, &size), 0);
  EXPECT_EQ(lingers.l_onoff, 0) << "the parent's own end would be a reset";
  EXPECT_TRUE(pair.first.write("still here"));
  busy.second.resume();
  busy.first.end();
  run_until(*loop, [&] { return busy_log.received.size() == queued.size(); });
  EXPECT_EQ(log.received, "still here");
  EXPECT_EQ(log.log, "");
  EXPECT_EQ(busy_log.error, std::error_code());
}

// A server with a session that has unsent bytes, a client, a relay and a socket for packets.
class Household {
 public:
  explicit Household(Loop& loop) : loop_(loop) {
    const Address here = Address::loopback_ipv4(0);
    server_ = serve<Talking>(loop, here, std::ref(is_heard_)).value();
    client_ = Client::create(loop, server_->address(), [this](Result<Stream> result) {
                stream_ = std::move(*result);
                stream_.start(log_);
                stream_.pause();
              }).value();
    client_->connect();
    auto one = make_pair(loop, Kind::tcp).value();
    auto two = make_pair(loop, Kind::tcp).value();
    relaying_ = relay(std::move(one.second), std::move(two.second), [](const RelayResult&) {});
    near_ = std::move(one.first);
    far_ = std::move(two.first);
    far_.start(relayed_);
    packets_ = std::move(*Datagram::create(loop, here));
    run_until(loop, [&] { return stream_.is_open() && is_heard_; });
  }

  void expect_to_go_on() {
    stream_.resume();
    near_.write("relayed");
    const Address to = packets_.local_address();
    EXPECT_FALSE(packets_.send(bytes_of("x"), to));
    run_until(loop_,
              [&] { return log_.received.size() == kMuch && relayed_.received == "relayed"; });
    EXPECT_EQ(log_.log + relayed_.log, "");
    EXPECT_EQ(server_->sessions().size(), 1u);
    Stream late;
    const Connecting connecting =
        connect(loop_, server_->address(), [&](Result<Stream> made) { late = std::move(*made); });
    run_until(loop_, [&] { return late.is_open() && server_->sessions().size() == 2; });
  }

 private:
  static constexpr std::size_t kMuch = 8'000'000;

  struct Talking : Session {
    explicit Talking(bool& is_heard) : is_heard_(is_heard) {}
    void on_open() override { is_heard_ = stream().write(pattern(kMuch)); }
    std::size_t on_data(Bytes bytes) override { return bytes.size(); }
    bool& is_heard_;
  };

  Loop& loop_;
  bool is_heard_ = false;
  std::optional<Server<Talking>> server_;
  std::optional<Client> client_;
  Stream stream_;
  Recorder log_;
  Relaying relaying_;
  Stream near_;
  Stream far_;
  Recorder relayed_;
  Datagram packets_;
};

TEST_P(ForkedStreams, LeaveOtherParentResourcesUnaffected) {
  auto loop = std::move(*Loop::create());
  auto household = std::make_unique<Household>(*loop);
  const pid_t pid = ::fork();
  if (pid == 0) leave(loop, [&] { household.reset(); });
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  household->expect_to_go_on();
}

// One fork for each connection: the child serves it, and the parent closes its copy.
TEST(ForkedStream, BelongsToChildUntilItEndsOrClosesIt) {
  for (const bool closes : {false, true}) {
    auto loop = must(Loop::create());
    auto pair = must(make_pair(*loop, Kind::tcp));
    Recorder log;
    pair.second.start(log);
    const std::string answer = pattern(3'000'000);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      if (loop->after_fork() || !pair.first.write(answer)) ::_exit(1);
      closes ? pair.first.close() : pair.first.end();
      pair.first = Stream();
      pair.second = Stream();
      loop->run();
      ::_exit(0);
    }
    run_until(*loop, [&] { return log.log == "end closed "; });
    EXPECT_TRUE(log.received == answer);
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

// It was destroyed before the fork, and has unsent bytes.
TEST(ForkedStream, LingeringStreamIsCompletedByParent) {
  auto loop = must(Loop::create());
  auto pair = must(make_pair(*loop, Kind::tcp));
  Recorder log;
  pair.second.start(log);
  pair.second.pause();
  const std::string sent = pattern(8'000'000);
  EXPECT_TRUE(pair.first.write(sent));
  pair.first = Stream();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    if (loop->after_fork()) ::_exit(1);
    pair.second = Stream();
    ::_exit(loop->run() || loop->has_work() ? 2 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  pair.second.resume();
  run_until(*loop, [&] { return log.closed_calls == 1; });
  EXPECT_TRUE(log.received == sent);
  EXPECT_EQ(log.error, std::error_code());
}

// The parent has the thread that was reading.
TEST(ForkedStream, InMemoryReadsFileItselfInChild) {
  std::unique_ptr<Loop> loop = must(Loop::create());
  auto [left, right] = must(Stream::memory_pair(*loop));
  Recorder left_log;
  Recorder right_log;
  left.start(left_log);
  right.start(right_log);
  SlowDisk disk(SystemCall::read, 1);
  EXPECT_FALSE(left.send_file(file_with("file"), 0, 4));
  run_turns(*loop, 3);
  EXPECT_EQ(right_log.received, "");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    disk.respond();  // The parent's thread may not have begun to wait before the fork.
    if (loop->after_fork()) ::_exit(1);
    while (right_log.received != "file") loop->run(Run::once);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  disk.respond();
  run_until(*loop, [&] { return right_log.received == "file"; });
}

}  // namespace
}  // namespace spate::testing
