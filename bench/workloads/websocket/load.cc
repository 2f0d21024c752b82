// The client of websocket: each connection sends a binary message of --size bytes, waits for all of
// its echo, and sends the next, as uWebSockets' load_test does.
//
// The header of an echo has the shortest form, so its length is known, and only bytes are counted.
// With --verify 1 each is compared. With --kind idle each connection has one message echoed, then
// silence: measures the server's memory. `--kind tell` measures broadcasts: the first connection
// sends the next message when all connections have received the last one.
//
// Runs for --milliseconds, or until each connection has received --messages echoes.
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
        until_rest_ms_(bench_number(argc, argv, "rest_ms", kUntilRestMs)),
        verify_(bench_number(argc, argv, "verify", 0) != 0),
        kind_(bench_text(argc, argv, "kind", "echo")),
        server_(argc, argv, Placement::apart),
        to_(server_.address(0)),
        room_(new char[kRoom]) {
    const std::string message = message_of(std::size_t(bench_number(argc, argv, "size", 20)));
    asked_ = masked_frame(message);
    echo_ = frame_head(message.size()) + message;
  }

  int run() {
    if (is_idle()) {
      idle();
    } else {
      open_all();
      ask_all();
      limit_ == 0 ? run_.measure_for(milliseconds_) : run_.measure_until_done();
      report_speed();
    }
    return finish();
  }

 private:
  friend LoadRun<Load>;

  struct Talk {
    int fd = -1;
    std::size_t unsent = 0;
    std::size_t awaited = 0;
    std::uint64_t all = 0;
    bool wants_to_send = false;
    std::string got;  // With --verify.
  };

  bool is_idle() const { return kind_ == "idle"; }
  bool tells() const { return kind_ == "tell"; }
  bool is_done() const { return done_ == connections_; }
  std::uint64_t done() const { return echoes_; }

  // Shakes hands on a socket that blocks meanwhile.
  int open() {
    const int fd = bench_connect(to_);
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    const std::string handshake = handshake_for(tells() ? "/tell" : "/echo");
    if (send(fd, handshake.data(), handshake.size(), MSG_NOSIGNAL) != ssize_t(handshake.size()))
      bench_die("send");
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
      run_.add(talks_[i].fd, i);
    }
  }

  void ask_all() {
    if (tells()) return tell();
    for (std::size_t i = 0; i < connections_; ++i) ask(i);
  }

  void tell() {
    for (Talk& talk : talks_) talk.awaited = echo_.size();
    ask(0);
  }

  void ask(std::size_t i) {
    Talk& talk = talks_[i];
    talk.unsent = asked_.size();
    talk.awaited = echo_.size();
    send_rest(i);
  }

  void send_rest(std::size_t i) {
    Talk& talk = talks_[i];
    while (talk.unsent > 0) {
      const char* from = asked_.data() + (asked_.size() - talk.unsent);
      const ssize_t count = send(talk.fd, from, talk.unsent, MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) bench_die("send");
      talk.unsent -= std::size_t(count);
    }
    if (talk.wants_to_send == (talk.unsent > 0)) return;
    talk.wants_to_send = talk.unsent > 0;
    run_.want_to_send(talk.fd, i, talk.wants_to_send);
  }

  void hear(std::size_t i) {
    Talk& talk = talks_[i];
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
    if (is_idle() || talk.all == limit_)
      ++done_;
    else if (!tells())
      ask(i);
    if (tells() && ++told_ % connections_ == 0 && !is_done()) tell();
  }

  void idle() {
    const int first = open();  // Allocates what the server needs once.
    bench_sleep_ms(100);
    MemoryGrowth growth(server_);
    open_all();
    ask_all();
    run_.until_done();
    bench_sleep_ms(until_rest_ms_);
    growth.report(connections_);
    bench_reset(first);
  }

  void report_speed() const {
    bench_metric("messages_per_s", "1/s", run_.per_second());
    bench_metric("processor_us", "us", run_.processor_us());
  }

  int finish() {
    for (const Talk& talk : talks_) bench_reset(talk.fd);
    server_.end();
    if (limit_ > 0 || is_idle()) {
      bench_work("echoes", echoes_);
      bench_work("connections", connections_);
    }
    bench_ops("message", echoes_);
    return 0;
  }

  const std::size_t connections_;
  const long milliseconds_;
  const std::uint64_t limit_;
  const long until_rest_ms_;
  const bool verify_;
  const std::string kind_;
  ServerProcess server_;
  const sockaddr_in to_;
  LoadRun<Load> run_{*this, server_};
  const std::unique_ptr<char[]> room_;
  std::string asked_;
  std::string echo_;
  std::vector<Talk> talks_;
  std::uint64_t echoes_ = 0, told_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return Load(argc, argv).run(); }
