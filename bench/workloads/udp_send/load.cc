// The clients of udp_send: --peers sockets, each with one request in flight. When a socket has all
// packets of the response, it sends the next request. Lets the kernel join packets (UDP_GRO).
//
// Runs for --milliseconds, or for --requests. A lost packet is a failure: the responses fit into
// the sockets' buffers.
#include <linux/udp.h>

#include <algorithm>

#include "harness/load.h"
#include "workloads/udp_send/train.h"

namespace {

constexpr int kWaitMs = 60'000;

class Clients {
 public:
  Clients(const sockaddr_in& to, std::size_t count, bool verify)
      : verify_(verify), epoll_(epoll_create1(EPOLL_CLOEXEC)), clients_(count) {
    for (std::size_t i = 0; i < count; ++i) open(i, to);
  }

  // Waits for packets, and sends requests as long as `again` is set.
  void turn(bool again) {
    epoll_event events[64];
    const int count = epoll_wait(epoll_, events, 64, kWaitMs);
    if (count <= 0) bench_die("a packet was lost");
    for (int i = 0; i < count; ++i) receive(clients_[events[i].data.u64], again);
  }

  std::uint64_t requests() const { return requests_; }
  std::uint64_t packets() const { return packets_; }

 private:
  struct Client {
    int fd = -1;
    std::size_t received = 0;  // Packets of the response.
  };

  void open(std::size_t i, const sockaddr_in& to) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) bench_die("connect");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) bench_die("epoll_ctl");
    clients_[i].fd = fd;
    ask(clients_[i]);
  }

  void ask(Client& client) {
    const char request[kRequest] = {};
    if (::send(client.fd, request, sizeof request, 0) != ssize_t(sizeof request)) bench_die("send");
    ++requests_;
  }

  void receive(Client& client, bool again) {
    char room[sizeof train_.bytes + 1];
    for (ssize_t size; (size = recv(client.fd, room, sizeof room, 0)) > 0;) {
      check(client, room, std::size_t(size));
      const std::size_t count = std::size_t(size) / kPacket;
      client.received += count;
      packets_ += count;
      if (client.received < kTrain) continue;
      client.received = 0;
      if (again) ask(client);
    }
  }

  void check(const Client& client, const char* bytes, std::size_t size) const {
    const std::size_t at = client.received * kPacket;
    if (size % kPacket != 0 || at + size > sizeof train_.bytes)
      ServerProcess::fail("a packet of another size arrived");
    if (verify_ && memcmp(bytes, train_.bytes + at, size) != 0)
      ServerProcess::fail("other bytes came than the train has");
  }

  const bool verify_;
  const int epoll_;
  std::vector<Client> clients_;
  const Train train_;
  std::uint64_t requests_ = 0, packets_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::apart);
  const long peers = std::clamp(bench_number(argc, argv, "peers", 1), 1L, 1000L);
  const auto requests = std::uint64_t(bench_number(argc, argv, "requests", 0));
  const auto length = std::uint64_t(bench_number(argc, argv, "milliseconds", 300)) * 1000000;
  const bool verify = bench_number(argc, argv, "verify", 0) != 0;
  Clients clients(server.address(0), std::size_t(peers), verify);
  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  do {
    clients.turn(true);
  } while (requests > 0 ? clients.requests() < requests : bench_now_ns() - begin < length);
  const double seconds = double(bench_now_ns() - begin) * 1e-9;
  const double processor_ns = double(server.processor_ns() - begin_processor);
  const auto packets = double(clients.packets());
  while (clients.packets() < clients.requests() * kTrain) clients.turn(false);
  const ServerProcess::Tally told = server.end();
  bench_metric("packets_per_s", "1/s", packets / seconds);
  bench_metric("processor_us", "us", processor_ns / 1e3 / packets);
  bench_work("all_at_the_server", told.bytes == clients.requests() * kRequest ? 1 : 0);
  if (requests > 0) bench_work("enough", clients.requests() >= requests ? 1 : 0);
  bench_ops("packet", clients.packets());
  return 0;
}
