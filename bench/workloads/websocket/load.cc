// The client of websocket: each connection sends a binary message of --size bytes, waits for all of
// its echo, and sends the next, as uWebSockets' load_test does.
//
// The head of an echo is as short as may be, so its length is known, and only bytes are counted.
// With --verify 1 each is compared. With --kind idle each connection has one message echoed, and
// then says nothing: what does the server keep?
//
// Runs for --milliseconds, or until each connection has had --messages echoes.
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "harness/load.h"
#include "workloads/websocket/message.h"

namespace {

constexpr std::size_t kRoom = 256 * 1024;
constexpr char kMask[4] = {0x12, 0x34, 0x56, 0x78};

std::string message_of(std::size_t size) {
  std::string text(size, 'm');
  for (std::size_t i = 0; i < size; ++i) text[i] = char('a' + i % 26);
  return text;
}

std::string masked_frame(std::string message) {
  std::string frame = frame_head(message.size(), 0x80).append(kMask, 4);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = char(message[i] ^ kMask[i % 4]);
  return frame + message;
}

class Load {
 public:
  Load(int argc, char** argv)
      : connections_(std::size_t(bench_number(argc, argv, "connections", 1))),
        milliseconds_(bench_number(argc, argv, "milliseconds", 300)),
        limit_(std::uint64_t(bench_number(argc, argv, "messages", 0))),
        verify_(bench_number(argc, argv, "verify", 0) != 0),
        is_idle_(std::string_view(bench_text(argc, argv, "kind", "echo")) == "idle"),
        server_(argc, argv, Placement::apart),
        to_(server_.address(0)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        room_(new char[kRoom]) {
    const std::string message = message_of(std::size_t(bench_number(argc, argv, "size", 20)));
    asked_ = masked_frame(message);
    echo_ = frame_head(message.size()) + message;
  }

  int run() {
    if (is_idle_) {
      idle();
    } else {
      open_all();
      for (Talk& talk : talks_) ask(talk);
      limit_ == 0 ? run_for_a_time() : run_to_the_limit();
      report_speed();
    }
    return finish();
  }

 private:
  struct Talk {
    int fd = -1;
    std::size_t unsent = 0;
    std::size_t awaited = 0;
    std::uint64_t all = 0;
    bool wants_to_send = false;
    std::string got;  // With --verify.
  };

  // Shakes hands on a socket that blocks meanwhile.
  int open() {
    const int fd = bench_connect(to_);
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    if (send(fd, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) != ssize_t(kAsk.size())) bench_die("send");
    std::string answer;
    while (!answer.ends_with("\r\n\r\n")) {
      char byte;
      if (recv(fd, &byte, 1, 0) != 1) ServerProcess::fail("no answer to the handshake");
      answer += byte;
    }
    if (!answer.starts_with("HTTP/1.1 101 ") || !answer.contains(kAccepted))
      ServerProcess::fail("the server does not accept");
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    return fd;
  }

  void open_all() {
    talks_.resize(connections_);
    for (std::size_t i = 0; i < connections_; ++i) {
      talks_[i].fd = open();
      control(EPOLL_CTL_ADD, talks_[i], EPOLLIN);
    }
  }

  void control(int what, const Talk& talk, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t(&talk - talks_.data());
    if (epoll_ctl(epoll_, what, talk.fd, &event) != 0) bench_die("epoll_ctl");
  }

  void ask(Talk& talk) {
    talk.unsent = asked_.size();
    talk.awaited = echo_.size();
    send_rest(talk);
  }

  void send_rest(Talk& talk) {
    while (talk.unsent > 0) {
      const char* from = asked_.data() + (asked_.size() - talk.unsent);
      const ssize_t count = send(talk.fd, from, talk.unsent, MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) bench_die("send");
      talk.unsent -= std::size_t(count);
    }
    if (talk.wants_to_send == (talk.unsent > 0)) return;
    talk.wants_to_send = talk.unsent > 0;
    control(EPOLL_CTL_MOD, talk, talk.wants_to_send ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  void hear(Talk& talk) {
    while (talk.awaited > 0) {
      const ssize_t count = recv(talk.fd, room_.get(), kRoom, 0);
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) ServerProcess::fail("a connection ends before its echo does");
      if (std::size_t(count) > talk.awaited) ServerProcess::fail("an echo is too long");
      if (verify_) talk.got.append(room_.get(), std::size_t(count));
      talk.awaited -= std::size_t(count);
      if (talk.awaited > 0 && std::size_t(count) < kRoom) return;
    }
    if (verify_ && std::exchange(talk.got, {}) != echo_)
      ServerProcess::fail("an echo is not what was sent");
    ++echoes_;
    ++talk.all;
    if (is_idle_ || talk.all == limit_)
      ++done_;
    else
      ask(talk);
  }

  template <class Over>
  void turn_until(Over over) {
    std::vector<epoll_event> events(1024);
    while (!over()) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) {
        Talk& talk = talks_[std::size_t(events[std::size_t(i)].data.u64)];
        const std::uint32_t ready = events[std::size_t(i)].events;
        if ((ready & EPOLLOUT) != 0) send_rest(talk);
        if ((ready & ~std::uint32_t{EPOLLOUT}) != 0) hear(talk);
      }
    }
  }

  void run_to_the_limit() {
    measure([this] { turn_until([this] { return done_ == connections_; }); });
  }

  void run_for_a_time() {
    const auto passes = [this](long milliseconds) {
      const std::uint64_t end = bench_now_ns() + std::uint64_t(milliseconds) * 1'000'000;
      turn_until([end] { return bench_now_ns() >= end; });
    };
    passes(milliseconds_ / 4);
    measure([&] { passes(milliseconds_); });
  }

  template <class Function>
  void measure(Function function) {
    const std::uint64_t before = echoes_, begin_processor = server_.processor_ns();
    const std::uint64_t begin = bench_now_ns();
    function();
    seconds_ = double(bench_now_ns() - begin) * 1e-9;
    spent_ns_ = server_.processor_ns() - begin_processor;
    measured_ = echoes_ - before;
  }

  void idle() {
    const int first = open();  // What a server keeps for all of them it has then.
    bench_sleep_ms(100);
    MemoryGrowth growth(server_);
    open_all();
    for (Talk& talk : talks_) ask(talk);
    turn_until([this] { return done_ == connections_; });
    bench_sleep_ms(kUntilRestMs);
    growth.report(connections_);
    bench_reset(first);
  }

  void report_speed() const {
    bench_metric("messages_per_s", "1/s", double(measured_) / seconds_);
    bench_metric("processor_us", "us", double(spent_ns_) / 1e3 / double(measured_));
  }

  int finish() {
    for (const Talk& talk : talks_) bench_reset(talk.fd);
    server_.end();
    if (limit_ > 0 || is_idle_) {
      bench_work("echoes", echoes_);
      bench_work("connections", connections_);
    }
    bench_ops("message", echoes_);
    return 0;
  }

  const std::size_t connections_;
  const long milliseconds_;
  const std::uint64_t limit_;
  const bool verify_;
  const bool is_idle_;
  ServerProcess server_;
  const sockaddr_in to_;
  const int epoll_;
  const std::unique_ptr<char[]> room_;
  std::string asked_;
  std::string echo_;
  std::vector<Talk> talks_;
  std::uint64_t echoes_ = 0, measured_ = 0, spent_ns_ = 0;
  std::size_t done_ = 0;
  double seconds_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return Load(argc, argv).run(); }
