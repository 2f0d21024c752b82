// The ping-pong of muduo's and evpp's benchmarks: every connection bounces one block, whatever
// arrives goes back. Written once over a contestant's Side, which is one thread's loop:
//
//   struct Side {
//     Side(std::span<const int> sockets, Tally& tally);  // connected TCP sockets, non-blocking,
//     ours void send_to_all(std::span<const char> block);     // before run(), on the thread of
//     run() void run();                       // echoes until the tally says that it is enough
//     static void version();            // calls bench_version()
//   };
//
// Whenever bytes have arrived, a Side calls tally.add(how many); if that returns true, run()
// returns soon. Sides are made, run and destroyed on their own threads.
#ifndef BENCH_WORKLOADS_PINGPONG_H
#define BENCH_WORKLOADS_PINGPONG_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <span>
#include <thread>
#include <vector>

#include "harness/contestant.h"

// What a side has received, and when it is enough.
struct Tally {
  std::uint64_t bytes = 0;
  std::uint64_t limit = UINT64_MAX;   // Of bytes.
  std::atomic<bool>* over = nullptr;  // The other side, or the clock, has had enough.

  bool add(std::size_t count) {
    bytes += count;
    return bytes >= limit || over->load(std::memory_order_relaxed);
  }
};

template <class Side>
class PingPong {
 public:
  static int main(int argc, char** argv) {
    bench_raise_fd_limit();
    PingPong game(bench_number(argc, argv, "connections", 1),
                  bench_number(argc, argv, "block", 16384), bench_number(argc, argv, "threads", 1),
                  bench_number(argc, argv, "milliseconds", 300),
                  bench_number(argc, argv, "messages", 0));
    Side::version();
    game.connect_all();
    game.play();
    return game.report();
  }

 private:
  struct Player {
    std::vector<int> sockets;
    Tally tally;
    std::uint64_t begin_bytes = 0;
  };

  PingPong(long connections, long block, long threads, long milliseconds, long messages)
      : connections_(connections),
        block_(std::size_t(block)),
        milliseconds_(milliseconds),
        messages_(std::uint64_t(messages)),
        servers_(std::size_t(threads)),
        clients_(std::size_t(threads)) {}

  void connect_all() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* address = reinterpret_cast<sockaddr*>(&at);
    if (bind(listener, address, size) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, address, &size) != 0)
      bench_die("listen");
    for (long i = 0; i < connections_; ++i) {
      const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(client, address, size) != 0) bench_die("connect");
      const int server = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (server < 0) bench_die("accept");
      const std::size_t turn = std::size_t(i) % servers_.size();
      servers_[turn].sockets.push_back(prepared(server));
      clients_[turn].sockets.push_back(prepared(client));
    }
    close(listener);
  }

  static int prepared(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) bench_die("fcntl");
    return fd;
  }

  // Servers on the first half of the processors, clients on the second, as far as there are two.
  static void pin(bool client, std::size_t index) {
    cpu_set_t allowed, one;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    const std::size_t half = cpus.size() / 2;
    if (half == 0) return;
    CPU_ZERO(&one);
    CPU_SET(cpus[(client ? half : 0) + index % half], &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }

  void run_player(Player& player, bool client, std::size_t index, std::latch& ready) {
    pin(client, index);
    player.tally.over = &over_;
    if (client && messages_ > 0) player.tally.limit = messages_ * block_ / clients_.size();
    Side side(player.sockets, player.tally);
    ready.arrive_and_wait();
    const std::vector<char> block(block_, 'x');
    if (client) side.send_to_all(block);
    side.run();
    over_ = true;
  }

  void play() {
    std::latch ready(std::ptrdiff_t(servers_.size() * 2 + 1));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      threads.emplace_back([&, i] { run_player(servers_[i], false, i, ready); });
      threads.emplace_back([&, i] { run_player(clients_[i], true, i, ready); });
    }
    ready.arrive_and_wait();
    begin_ = bench_now_ns();
    if (messages_ == 0) bench_sleep_ms(milliseconds_);
    if (messages_ == 0) over_ = true;
    for (std::thread& thread : threads) thread.join();
    elapsed_ = bench_now_ns() - begin_;
  }

  int report() {
    std::uint64_t bytes = 0;
    for (const Player& player : clients_) bytes += player.tally.bytes;
    const double seconds = double(elapsed_) * 1e-9;
    bench_metric("mib_per_s", "MiB/s", double(bytes) / 1048576.0 / seconds);
    bench_metric("messages_per_s", "1/s", double(bytes) / double(block_) / seconds);
    if (messages_ > 0) bench_work("enough_bytes", bytes >= messages_ * block_ ? 1 : 0);
    bench_ops("message", 2 * bytes / block_);  // Each is echoed by either side.
    return 0;
  }

  long connections_;
  std::size_t block_;
  long milliseconds_;
  std::uint64_t messages_;
  std::vector<Player> servers_;
  std::vector<Player> clients_;
  std::atomic<bool> over_{false};
  std::uint64_t begin_ = 0;
  std::uint64_t elapsed_ = 0;
};

// For contestants that do their own input and output: sends all that the kernel takes, and says how
// much that was.
inline std::size_t pingpong_send(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) bench_die("send");
  return sent < 0 ? 0 : std::size_t(sent);
}

#endif
