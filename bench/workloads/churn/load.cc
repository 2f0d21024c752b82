// The client of churn, after libuv's tcp4_pound: connect, one request, one reply, close.
// --connections of them are open at any time; the oldest is waited for, then a new one takes its
// place. So there is one system call for each of these steps, and none to wait for readiness.
//
// Runs for --milliseconds, or until --count were served. Server and client share one processor: the
// kernel does more work for the side that connects, which would hide the server otherwise.
#include <deque>

#include "harness/load.h"

namespace {

constexpr char kRequest[] = {'Q', 'S'};

class Pounder {
 public:
  explicit Pounder(ServerProcess& server) : server_(server) {}

  // Addresses by turns: those of closed connections cannot be had again for a minute.
  void open() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + opened_ % 64);
    const int on = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) != 0 ||
        bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0)
      bench_die("bind");
    const sockaddr_in to = server_.address(0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) bench_die("connect");
    if (send(fd, kRequest, sizeof kRequest, MSG_NOSIGNAL) != sizeof kRequest) bench_die("send");
    open_.push_back(fd);
    ++opened_;
  }

  void close_oldest() {
    char reply[16];
    const int fd = open_.front();
    open_.pop_front();
    const ssize_t size = recv(fd, reply, sizeof reply, 0);
    if (size != sizeof kRequest || memcmp(reply, kRequest, sizeof kRequest) != 0)
      ServerProcess::fail("another reply came than was asked for");
    close(fd);
    ++served_;
  }

  std::uint64_t served() const { return served_; }
  std::uint64_t opened() const { return opened_; }
  std::size_t open_now() const { return open_.size(); }

 private:
  ServerProcess& server_;
  std::deque<int> open_;
  std::uint64_t opened_ = 0, served_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::together);
  const auto connections = std::size_t(bench_number(argc, argv, "connections", 100));
  const auto count = std::uint64_t(bench_number(argc, argv, "count", 0));
  const auto length = std::uint64_t(bench_number(argc, argv, "milliseconds", 400)) * 1000000;
  Pounder pounder(server);
  while (pounder.open_now() < connections) pounder.open();
  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  do {
    pounder.close_oldest();
    pounder.open();
  } while (count > 0 ? pounder.opened() < count : bench_now_ns() - begin < length);
  const auto served = double(pounder.served());
  const double seconds = double(bench_now_ns() - begin) * 1e-9;
  const double processor_ns = double(server.processor_ns() - begin_processor);
  while (pounder.open_now() > 0) pounder.close_oldest();
  bench_sleep_ms(20);
  const ServerProcess::Tally told = server.end();
  bench_metric("connections_per_s", "1/s", served / seconds);
  bench_metric("processor_us", "us", processor_ns / 1e3 / served);
  if (count > 0) {
    bench_work("served", pounder.served());
    bench_work("accepted", told.accepted);
    bench_work("closed", told.closed);
    bench_work("bytes", told.bytes);
  }
  bench_ops("connection", told.accepted);
  return 0;
}
