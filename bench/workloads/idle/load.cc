// The client of idle: --connections that send 64 bytes once and then nothing, or one byte every
// --heartbeat_ms. The growth of the server's memory, divided by the connections, is its cost of
// one. Then measures the server's processor time for --milliseconds.
#include <poll.h>

#include "harness/load.h"

namespace {

constexpr std::size_t kGreeting = 64;

class Crowd {
 public:
  Crowd(const ServerProcess& server, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) fds_.push_back(bench_connect(server.address(i)));
  }

  // Sends `size` bytes on connection `i`.
  void say(std::size_t i, std::size_t size) {
    if (send(fds_[i], bench_pattern(i, 0), size, MSG_NOSIGNAL) != ssize_t(size)) bench_die("send");
    bytes_ += size;
  }
  // Waits until they are back.
  void hear(std::size_t i, std::size_t size) {
    char reply[kGreeting];
    for (std::size_t got = 0; got < size;) {
      const ssize_t count = recv(fds_[i], reply + got, size - got, 0);
      if (count > 0) got += std::size_t(count);
      if (count > 0) continue;
      if (count == 0) ServerProcess::fail("the server has closed an idle connection");
      if (errno != EAGAIN) bench_die("recv");
      pollfd wanted = {fds_[i], POLLIN, 0};
      poll(&wanted, 1, -1);
    }
    if (memcmp(reply, bench_pattern(i, 0), size) != 0)
      ServerProcess::fail("other bytes came back than were sent");
  }
  void reset_all() {
    for (const int fd : fds_) bench_reset(fd);
  }
  std::size_t size() const { return fds_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<int> fds_;
  std::uint64_t bytes_ = 0;
};

// Lets `milliseconds` pass; each connection says a byte every `heartbeat_ms`, one after the other.
void idle_for(Crowd& crowd, long milliseconds, long heartbeat_ms) {
  if (heartbeat_ms == 0) return bench_sleep_ms(milliseconds);
  const std::uint64_t begin = bench_now_ns(), period = std::uint64_t(heartbeat_ms) * 1000000;
  const auto beats = std::uint64_t(milliseconds) * crowd.size() / std::uint64_t(heartbeat_ms);
  std::uint64_t said = 0, heard = 0;
  while (heard < beats) {
    const std::uint64_t due = (bench_now_ns() - begin) * crowd.size() / period;
    for (; said < beats && said < due; ++said) crowd.say(said % crowd.size(), 1);
    for (; heard < said; ++heard) crowd.hear(heard % crowd.size(), 1);
    bench_sleep_ms(1);
  }
}

// Waits until the server has closed them all, because they were idle for too long.
void await_expiry(ServerProcess& server, std::size_t connections) {
  for (int turn = 0; turn < 1000; ++turn) {
    if (server.tally().expired == connections) return;
    bench_sleep_ms(10);
  }
  ServerProcess::fail("idle timeouts do not expire");
}

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::apart);
  const auto connections = std::size_t(bench_number(argc, argv, "connections", 1000));
  const long milliseconds = bench_number(argc, argv, "milliseconds", 1000);
  MemoryGrowth growth(server);
  Crowd crowd(server, connections);
  for (std::size_t i = 0; i < crowd.size(); ++i) crowd.say(i, kGreeting);
  for (std::size_t i = 0; i < crowd.size(); ++i) crowd.hear(i, kGreeting);
  bench_sleep_ms(10);
  growth.report(connections);

  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  idle_for(crowd, milliseconds, bench_number(argc, argv, "heartbeat_ms", 0));
  const double processor_ns = double(server.processor_ns() - begin_processor);
  const double elapsed_ns = double(bench_now_ns() - begin);
  const ServerProcess::Tally end = server.tally();
  const bool expire = bench_number(argc, argv, "expire", 0) != 0;
  if (end.expired > 0 && !expire)
    ServerProcess::fail("idle timeouts expired: this machine is too busy");
  if (expire) await_expiry(server, connections);
  crowd.reset_all();
  bench_sleep_ms(20);
  const ServerProcess::Tally last = server.end();

  bench_metric("cpu_percent", "%", 100 * processor_ns / elapsed_ns);
  bench_work("accepted", end.accepted);
  bench_work("bytes_sent", crowd.bytes());
  bench_work("bytes_at_the_server", end.bytes);
  bench_work("expired", last.expired);
  bench_ops("connection", end.accepted);
  return 0;
}
