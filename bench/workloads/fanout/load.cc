// The client of fanout: --subscribers connections that only receive, and one more, the last, that
// publishes messages of --size bytes, --burst of them in one send. At most two bursts are in
// flight: the next one is sent when the slowest subscriber has received the last but one. So no
// queue grows beyond two bursts. Subscribers discard their input in the kernel (MSG_TRUNC); with
// --verify 1 each compares every byte.
//
// Runs for --milliseconds, or until --messages were published and received by all. With --redis
// PORT it connects to the redis server at that port, with its protocol.
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "harness/load.h"

namespace {

constexpr std::uint64_t kBurstsAhead = 2;

struct Options {
  std::size_t subscribers;
  std::uint64_t size;
  std::uint64_t burst;
  std::uint64_t bursts;  // 0: until the time is up.
  bool verify;
};

// How messages look on the wire, there and back.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void subscribe(int) {}
  // One burst; it is the same each time if the messages are not compared.
  virtual std::string burst(std::uint64_t number) const = 0;
  // How many bytes of a message reach a subscriber.
  virtual std::uint64_t arriving() const = 0;
};

// Nothing but the messages.
class PlainWire final : public Wire {
 public:
  explicit PlainWire(const Options& options) : options_(options) {}
  std::string burst(std::uint64_t number) const override {
    const std::uint64_t size = options_.burst * options_.size;
    return std::string(bench_pattern(0, number * size), size);
  }
  std::uint64_t arriving() const override { return options_.size; }

 private:
  const Options& options_;
};

// PUBLISH and SUBSCRIBE of one channel, in Redis's protocol.
class RedisWire final : public Wire {
 public:
  explicit RedisWire(const Options& options) : options_(options) {}
  void subscribe(int fd) override {
    exchange(fd, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n",
             "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  }
  std::string burst(std::uint64_t number) const override {
    std::string all;
    for (std::uint64_t i = 0; i < options_.burst; ++i)
      all += "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n" +
             body(bench_pattern(0, (number * options_.burst + i) * options_.size));
    return all;
  }
  std::uint64_t arriving() const override {
    return std::string("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n").size() +
           body(bench_pattern(0, 0)).size();
  }

 private:
  std::string body(const char* bytes) const {
    return "$" + std::to_string(options_.size) + "\r\n" + std::string(bytes, options_.size) +
           "\r\n";
  }
  static void exchange(int fd, const std::string& question, const std::string& answer) {
    if (send(fd, question.data(), question.size(), MSG_NOSIGNAL) != ssize_t(question.size()))
      bench_die("send");
    std::string came;
    while (came.size() < answer.size()) {
      char bytes[64];
      const ssize_t size = recv(fd, bytes, std::min(sizeof bytes, answer.size() - came.size()), 0);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) bench_die("recv");
      came.append(bytes, std::size_t(size));
    }
    if (came != answer) ServerProcess::fail("redis answers something else");
  }

  const Options& options_;
};

class Audience {
 public:
  Audience(const Options& options, Wire& wire, const sockaddr_in& server)
      : options_(options),
        wire_(wire),
        burst_(wire.burst(0)),
        per_burst_(options.burst * wire.arriving()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        room_(new char[kPatternRun]),
        received_(options.subscribers) {
    for (std::size_t i = 0; i < options.subscribers; ++i) {
      fds_.push_back(bench_connect(server));
      wire.subscribe(fds_.back());
      epoll_event event{};
      event.events = EPOLLIN | EPOLLET;
      event.data.u64 = i;
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fds_.back(), &event) != 0) bench_die("epoll_ctl");
    }
    // Accepted after all others: they are there before its first byte is read.
    publisher_ = bench_connect(server);
    if (fcntl(publisher_, F_SETFL, 0) != 0) bench_die("fcntl");
  }

  // Returns when all have everything, or at `end` if something was delivered by then.
  void run(std::uint64_t end) {
    const std::uint64_t before = total_;
    const auto is_over = [&] {
      return options_.bursts > 0 ? complete_ == options_.bursts
                                 : bench_now_ns() >= end && total_ > before;
    };
    std::vector<epoll_event> events(1024);
    while (!is_over()) {
      while (may_publish()) publish();
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) receive(events[std::size_t(i)].data.u64);
    }
  }

  // The bursts that are under way, so that the server has nothing left to do.
  void finish() {
    const std::uint64_t wanted = published_;
    std::vector<epoll_event> events(1024);
    while (complete_ < wanted) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) receive(events[std::size_t(i)].data.u64);
    }
  }

  void reset_all() {
    for (const int fd : fds_) bench_reset(fd);
    bench_reset(publisher_);
  }

  std::uint64_t published_messages() const { return published_ * options_.burst; }
  std::uint64_t delivered_bytes() const { return total_; }
  const std::vector<std::uint64_t>& received() const { return received_; }

 private:
  bool may_publish() const {
    return published_ < complete_ + kBurstsAhead &&
           (options_.bursts == 0 || published_ < options_.bursts);
  }

  void publish() {
    if (options_.verify) burst_ = wire_.burst(published_);
    for (std::size_t sent = 0; sent < burst_.size();) {
      const ssize_t size =
          send(publisher_, burst_.data() + sent, burst_.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) bench_die("send");
      sent += std::size_t(size);
    }
    ++published_;
    while (recv(publisher_, room_.get(), kPatternRun, MSG_DONTWAIT | MSG_TRUNC) > 0) continue;
  }

  void receive(std::size_t who) {
    for (;;) {
      const int flags = options_.verify ? 0 : MSG_TRUNC;
      const ssize_t count = recv(fds_[who], room_.get(), kPatternRun, flags);
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) bench_die("recv");
      const auto size = std::size_t(count);
      if (options_.verify && memcmp(room_.get(), bench_pattern(0, received_[who]), size) != 0)
        ServerProcess::fail("other bytes came than were published");
      advance(who, size);
      if (size < kPatternRun) return;
    }
  }

  void advance(std::size_t who, std::size_t size) {
    const std::uint64_t before = received_[who] / per_burst_;
    received_[who] += size;
    total_ += size;
    const std::uint64_t after = received_[who] / per_burst_;
    if (after > published_ || received_[who] > published_ * per_burst_)
      ServerProcess::fail("more came than was published");
    for (std::uint64_t burst = before; burst < after; ++burst) ++have_[burst % kBurstsAhead];
    while (have_[complete_ % kBurstsAhead] == received_.size()) {
      have_[complete_ % kBurstsAhead] = 0;
      ++complete_;
    }
  }

  const Options& options_;
  Wire& wire_;
  std::string burst_;
  const std::uint64_t per_burst_;
  const int epoll_;
  const std::unique_ptr<char[]> room_;
  std::vector<int> fds_;
  int publisher_;
  std::vector<std::uint64_t> received_;
  std::size_t have_[kBurstsAhead] = {};                     // How many subscribers have this burst.
  std::uint64_t published_ = 0, complete_ = 0, total_ = 0;  // Bursts, bursts that all have, bytes.
};

class Performance {
 public:
  Performance(int argc, char** argv)
      : options_{std::size_t(bench_number(argc, argv, "subscribers", 100)),
                 std::uint64_t(bench_number(argc, argv, "size", 64)),
                 std::uint64_t(bench_number(argc, argv, "burst", 32)), 0,
                 bench_number(argc, argv, "verify", 0) != 0},
        length_(std::uint64_t(bench_number(argc, argv, "milliseconds", 300)) * 1000000) {
    options_.bursts = std::uint64_t(bench_number(argc, argv, "messages", 0)) / options_.burst;
    bench_raise_fd_limit();
    const long port = bench_number(argc, argv, "redis", 0);
    if (port == 0) {
      server_.emplace(argc, argv, Placement::apart);
      wire_ = std::make_unique<PlainWire>(options_);
    } else {
      options_.verify = false;
      wire_ = std::make_unique<RedisWire>(options_);
    }
    audience_ = std::make_unique<Audience>(options_, *wire_, address(port));
  }

  void run() {
    if (options_.bursts == 0) audience_->run(bench_now_ns() + length_ / 4);
    const std::uint64_t bytes = audience_->delivered_bytes(), processor = processor_ns();
    const std::uint64_t begin = bench_now_ns();
    audience_->run(begin + length_);
    seconds_ = double(bench_now_ns() - begin) * 1e-9;
    deliveries_ = double(audience_->delivered_bytes() - bytes) / double(wire_->arriving());
    processor_ns_ = double(processor_ns() - processor);
    audience_->finish();
  }

  int report() {
    const std::uint64_t published = audience_->published_messages();
    const auto [least, most] =
        std::minmax_element(audience_->received().begin(), audience_->received().end());
    bench_metric("messages_per_s", "1/s", deliveries_ / seconds_);
    if (server_) bench_metric("processor_us", "us", processor_ns_ / 1e3 / deliveries_);
    if (options_.bursts > 0) {
      bench_work("published", published);
      bench_work("least_received", *least / wire_->arriving());
      bench_work("most_received", *most / wire_->arriving());
    }
    bench_ops("delivery", published * options_.subscribers);
    audience_->reset_all();
    if (server_) check_tally(published);
    return 0;
  }

 private:
  sockaddr_in address(long port) const {
    if (server_) return server_->address(0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(std::uint16_t(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  std::uint64_t processor_ns() const { return server_ ? server_->processor_ns() : 0; }

  void check_tally(std::uint64_t published) {
    const ServerProcess::Tally told = server_->end();
    if (told.bytes != published * options_.size)
      ServerProcess::fail("the server has not received what was published");
    if (options_.bursts == 0) return;
    bench_work("bytes_at_the_server", told.bytes);
    bench_work("connections", told.accepted);
  }

  Options options_;
  const std::uint64_t length_;
  std::optional<ServerProcess> server_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Audience> audience_;
  double seconds_ = 0, deliveries_ = 0, processor_ns_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Performance performance(argc, argv);
  performance.run();
  return performance.report();
}
