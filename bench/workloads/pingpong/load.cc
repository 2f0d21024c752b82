// The client of ping-pong: each connection sends one block and then sends back as many bytes as
// arrive, as muduo's and evpp's clients do. MSG_TRUNC has the kernel drop the bytes, so that the
// client costs little; with --verify 1 it compares each.
//
// Runs for --milliseconds, or until each connection has received --messages blocks. With --lockstep
// 1 all connections send a block before any may send the next, so that the server finds many ready.
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "harness/load.h"

namespace {

struct Game {
  std::uint64_t block;
  std::uint64_t limit;  // Bytes of a connection, 0 for none.
  bool lockstep;
  bool verify;
  std::atomic<bool> over{false};
};

// One thread, and the connections that are its own.
class Player {
 public:
  explicit Player(Game& game)
      : game_(game), epoll_(epoll_create1(EPOLL_CLOEXEC)), room_(new char[kPatternRun]) {}

  void add(int fd, std::size_t id) { balls_.push_back({fd, id, 0, 0}); }

  void run() {
    for (std::size_t i = 0; i < balls_.size(); ++i) {
      epoll_event event{};
      event.events = EPOLLIN | EPOLLOUT | EPOLLET;
      event.data.u64 = i;
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, balls_[i].fd, &event) != 0) bench_die("epoll_ctl");
    }
    std::vector<epoll_event> events(1024);
    begin_round();
    while (!is_over()) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) {
        Ball& ball = balls_[events[std::size_t(i)].data.u64];
        if (events[std::size_t(i)].events & ~std::uint32_t{EPOLLOUT}) receive(ball);
        send_more(ball);
      }
      if (game_.lockstep && back_ == balls_.size()) begin_round();
    }
  }

  void reset_all() {
    for (const Ball& ball : balls_) bench_reset(ball.fd);
  }
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // Returns how many connections have received a block.
  std::size_t awake() const { return awake_.load(std::memory_order_relaxed); }
  std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const Ball& ball : balls_) sum += ball.sent;
    return sum;
  }

 private:
  struct Ball {
    int fd;
    std::size_t id;
    std::uint64_t sent, received;
  };

  bool is_over() const {
    return game_.over.load(std::memory_order_relaxed) ||
           (game_.limit > 0 && done_ == balls_.size());
  }

  void begin_round() {
    back_ = 0;
    round_ += game_.block;
    for (Ball& ball : balls_) send_more(ball);
  }

  std::uint64_t may_send(const Ball& ball) const {
    const std::uint64_t bytes = game_.lockstep ? round_ : game_.block + ball.received;
    return game_.limit > 0 ? std::min(bytes, game_.limit) : bytes;
  }

  void send_more(Ball& ball) {
    for (std::uint64_t left; (left = may_send(ball) - ball.sent) > 0;) {
      const std::size_t size = std::min<std::size_t>(left, kPatternRun);
      const ssize_t count = send(ball.fd, bench_pattern(ball.id, ball.sent), size, MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) bench_die("send");
      ball.sent += std::uint64_t(count);
    }
  }

  void receive(Ball& ball) {
    const std::uint64_t before = ball.received;
    for (;;) {
      const int flags = game_.verify ? 0 : MSG_TRUNC;
      const ssize_t count = recv(ball.fd, room_.get(), kPatternRun, flags);
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) bench_die("recv");
      const auto size = std::size_t(count);
      if (game_.verify && memcmp(room_.get(), bench_pattern(ball.id, ball.received), size) != 0)
        ServerProcess::fail("other bytes came back than were sent");
      ball.received += size;
      if (size < kPatternRun) break;
    }
    if (ball.received > ball.sent) ServerProcess::fail("more came back than was sent");
    if (ball.received == before) return;
    if (before < game_.block && ball.received >= game_.block)
      awake_.store(awake() + 1, std::memory_order_relaxed);
    received_.store(received() + ball.received - before, std::memory_order_relaxed);
    if (game_.lockstep && ball.received == round_) ++back_;
    if (ball.received == game_.limit) ++done_;
  }

  Game& game_;
  const int epoll_;
  const std::unique_ptr<char[]> room_;
  std::vector<Ball> balls_;
  std::size_t back_ = 0, done_ = 0;
  std::uint64_t round_ = 0;  // In lockstep: how much each may have sent by now.
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::size_t> awake_{0};
};

class Match {
 public:
  Match(int argc, char** argv)
      : server_(argc, argv, Placement::apart),
        connections_(std::size_t(bench_number(argc, argv, "connections", 1))),
        milliseconds_(bench_number(argc, argv, "milliseconds", 300)) {
    game_.block = std::uint64_t(bench_number(argc, argv, "block", 16384));
    game_.limit = std::uint64_t(bench_number(argc, argv, "messages", 0)) * game_.block;
    game_.lockstep = bench_number(argc, argv, "lockstep", 0) != 0;
    game_.verify = bench_number(argc, argv, "verify", 0) != 0;
    const std::size_t threads = std::min(server_.threads(), connections_);
    for (std::size_t i = 0; i < threads; ++i) players_.push_back(std::make_unique<Player>(game_));
    for (std::size_t i = 0; i < connections_; ++i)
      players_[i % threads]->add(bench_connect(server_.address(i)), i);
  }

  void play() {
    if (game_.limit > 0) {
      measure([this] {
        start();
        join();
      });
      return;
    }
    start();
    while (awake() < connections_) bench_sleep_ms(1);
    bench_sleep_ms(milliseconds_ / 4);
    measure([this] {
      const std::uint64_t before = total();
      bench_sleep_ms(milliseconds_);
      while (total() == before) bench_sleep_ms(1);
    });
    game_.over = true;
    join();
  }

  int report() {
    const double messages = double(received_) / double(game_.block);
    bench_metric("mib_per_s", "MiB/s", double(received_) / 1048576.0 / seconds_);
    bench_metric("messages_per_s", "1/s", messages / seconds_);
    bench_metric("processor_us", "us", double(processor_ns_) / 1e3 / messages);
    std::uint64_t sent = 0;
    for (auto& player : players_) sent += player->sent();
    if (game_.limit == 0)
      for (auto& player : players_) player->reset_all();
    const ServerProcess::Tally told = server_.end();
    if (game_.limit > 0) {
      if (told.bytes != sent) ServerProcess::fail("the server has not received what was sent");
      bench_work("bytes_sent", sent);
      bench_work("bytes_received", total());
      bench_work("bytes_at_the_server", told.bytes);
      bench_work("connections", told.accepted);
    }
    bench_ops("message", told.bytes / game_.block);
    return 0;
  }

 private:
  void start() {
    for (auto& player : players_) threads_.emplace_back([&player] { player->run(); });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

  template <class Function>
  void measure(Function run) {
    const std::uint64_t begin_bytes = total(), begin_processor = server_.processor_ns();
    const std::uint64_t begin = bench_now_ns();
    run();
    seconds_ = double(bench_now_ns() - begin) * 1e-9;
    received_ = total() - begin_bytes;
    processor_ns_ = server_.processor_ns() - begin_processor;
  }

  std::size_t awake() const {
    std::size_t sum = 0;
    for (auto& player : players_) sum += player->awake();
    return sum;
  }

  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (auto& player : players_) sum += player->received();
    return sum;
  }

  ServerProcess server_;
  const std::size_t connections_;
  const long milliseconds_;
  Game game_{};
  std::vector<std::unique_ptr<Player>> players_;
  std::vector<std::thread> threads_;
  double seconds_ = 0;
  std::uint64_t received_ = 0, processor_ns_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Match match(argc, argv);
  match.play();
  return match.report();
}
