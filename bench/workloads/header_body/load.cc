// The client of header_body, after evpp's: each connection begins with message 1 and a body of 100
// bytes; each answer is followed by a message with a count and a body larger by one, until the
// count has reached --total_count. The time is that from the first message to the last answer of
// all.
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "harness/load.h"
#include "workloads/header_body/message.h"

namespace {

constexpr std::size_t kRoom = 65536;
constexpr std::uint32_t kFirstBody = 100, kLargestBody = 10000;

// One thread, and the connections that are its own.
class Talker {
 public:
  Talker(std::uint32_t total_count, bool verify)
      : total_count_(total_count),
        verify_(verify),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        out_(new char[kRoom]),
        in_(new char[kRoom]) {
    for (std::size_t i = 0; i < kRoom; ++i) out_[i] = char(i % 251);
  }

  void add(int fd) { talks_.push_back({fd, 1, kFirstBody, 0, {}}); }

  void run() {
    for (std::size_t i = 0; i < talks_.size(); ++i) {
      epoll_event event{};
      event.events = EPOLLIN | EPOLLET;
      event.data.u64 = i;
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, talks_[i].fd, &event) != 0) bench_die("epoll_ctl");
    }
    for (Talk& talk : talks_) say(talk);
    std::vector<epoll_event> events(1024);
    while (done_ < talks_.size()) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) hear(talks_[events[std::size_t(i)].data.u64]);
    }
  }

  std::uint64_t answers() const { return answers_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Talk {
    int fd;
    std::uint32_t count, body;
    std::size_t got;  // Bytes of the current reply that arrived.
    Header answer;
  };

  // Only one message is on the way, so the kernel has room for all of it.
  void say(Talk& talk) {
    const Header header = {htonl(talk.body), htonl(talk.count)};
    memcpy(out_.get(), &header, sizeof header);
    const std::size_t size = header.message_size();
    if (send(talk.fd, out_.get(), size, MSG_NOSIGNAL) != ssize_t(size)) bench_die("send");
    bytes_sent_ += size;
  }

  void hear(Talk& talk) {
    for (;;) {
      const ssize_t count = recv(talk.fd, in_.get(), kRoom, 0);
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) bench_die("recv");
      const auto size = std::size_t(count);
      bytes_received_ += size;
      take(talk, size);
      if (size < kRoom) return;
    }
  }

  void take(Talk& talk, std::size_t size) {
    const std::size_t whole = sizeof(Header) + talk.body;
    if (talk.got + size > whole) ServerProcess::fail("an answer is too long");
    if (talk.got < sizeof(Header))
      memcpy(reinterpret_cast<char*>(&talk.answer) + talk.got, in_.get(),
             std::min(size, sizeof(Header) - talk.got));
    if (verify_) compare(talk.got, size);
    talk.got += size;
    if (talk.got < whole) return;
    if (ntohl(talk.answer.packet_count) != talk.count + 1 || talk.answer.message_size() != whole)
      ServerProcess::fail("an answer is wrong");
    ++answers_;
    talk.got = 0;
    talk.count += 2;
    talk.body = talk.body < kLargestBody ? talk.body + 1 : kFirstBody;
    if (talk.count > total_count_)
      ++done_;
    else
      say(talk);
  }

  // Request and reply have equal bodies: after the header, out_ holds the expected byte of each
  // place.
  void compare(std::size_t from, std::size_t size) const {
    const std::size_t skip = std::min(size, from < sizeof(Header) ? sizeof(Header) - from : 0);
    if (memcmp(in_.get() + skip, out_.get() + from + skip, size - skip) != 0)
      ServerProcess::fail("other bytes came back than were sent");
  }

  const std::uint32_t total_count_;
  const bool verify_;
  const int epoll_;
  const std::unique_ptr<char[]> out_, in_;
  std::vector<Talk> talks_;
  std::size_t done_ = 0;
  std::uint64_t answers_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::apart);
  const auto connections = std::size_t(bench_number(argc, argv, "connections", 100));
  const auto total_count = std::uint32_t(bench_number(argc, argv, "total_count", 8192));
  const bool verify = bench_number(argc, argv, "verify", 0) != 0;
  const std::size_t count = std::min(server.threads(), connections);
  std::vector<std::unique_ptr<Talker>> talkers;
  for (std::size_t i = 0; i < count; ++i)
    talkers.push_back(std::make_unique<Talker>(total_count, verify));
  for (std::size_t i = 0; i < connections; ++i)
    talkers[i % count]->add(bench_connect(server.address(i)));

  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  std::vector<std::thread> threads;
  for (auto& talker : talkers) threads.emplace_back([&talker] { talker->run(); });
  for (std::thread& thread : threads) thread.join();
  const double seconds = double(bench_now_ns() - begin) * 1e-9;
  const double processor_ns = double(server.processor_ns() - begin_processor);
  const ServerProcess::Tally told = server.end();

  std::uint64_t answers = 0, sent = 0, received = 0;
  for (auto& talker : talkers) {
    answers += talker->answers();
    sent += talker->bytes_sent();
    received += talker->bytes_received();
  }
  bench_metric("seconds", "s", seconds);
  bench_metric("processor_us", "us", processor_ns / 1e3 / double(answers));
  bench_work("answers", answers);
  bench_work("bytes_sent", sent);
  bench_work("bytes_received", received);
  bench_work("bytes_at_the_server", told.bytes);
  bench_work("connections", told.accepted);
  bench_ops("message", answers);
  return 0;
}
