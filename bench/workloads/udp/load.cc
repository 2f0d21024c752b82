// The client of udp: --window packets in flight, to a server that sends each one back; for every
// returned packet another is sent. It sends and receives many packets in one call (sendmmsg,
// recvmmsg). Except with --verify 1 the kernel copies only the number at the start of each, so that
// the client costs little.
//
// Runs for --milliseconds, or for --packets. A lost packet is a failure: the whole window fits into
// the sockets' buffers.
#include <algorithm>

#include "harness/load.h"

namespace {

constexpr std::size_t kMaxPacket = 2048, kMaxWindow = 64;

class Flood {
 public:
  Flood(const sockaddr_in& to, std::size_t size, std::size_t window, bool verify)
      : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), size_(size), verify_(verify) {
    const timeval patience = {60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) bench_die("connect");
    for (std::size_t i = 0; i < kMaxWindow; ++i) {
      out_[i].resize(size_, 'x');
      in_[i].resize(size_ + 1);
      out_parts_[i] = {out_[i].data(), size_};
      in_parts_[i] = {in_[i].data(), verify_ ? size_ + 1 : sizeof(std::uint64_t)};
      out_messages_[i].msg_hdr.msg_iov = &out_parts_[i];
      in_messages_[i].msg_hdr.msg_iov = &in_parts_[i];
      out_messages_[i].msg_hdr.msg_iovlen = in_messages_[i].msg_hdr.msg_iovlen = 1;
    }
    send_some(window);
  }

  // Waits for answers. `again`: as many packets follow.
  void turn(bool again) {
    const int flags = MSG_WAITFORONE | (verify_ ? 0 : MSG_TRUNC);
    const int count = recvmmsg(fd_, in_messages_, kMaxWindow, flags, nullptr);
    if (count <= 0) bench_die("a packet was lost");
    for (int i = 0; i < count; ++i) check(std::size_t(i));
    if (again) send_some(std::size_t(count));
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }

 private:
  void send_some(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      memcpy(out_[i].data(), &sent_, sizeof sent_);
      ++sent_;
    }
    for (std::size_t done = 0; done < count;) {
      const int taken = sendmmsg(fd_, out_messages_ + done, unsigned(count - done), 0);
      if (taken <= 0) bench_die("sendmmsg");
      done += std::size_t(taken);
    }
  }

  // They return in the order in which they were sent.
  void check(std::size_t i) {
    std::uint64_t number = 0;
    memcpy(&number, in_[i].data(), sizeof number);
    const bool whole = in_messages_[i].msg_len == size_;
    if (!whole || number != received_)
      ServerProcess::fail("another packet came back than was sent");
    const std::string rest(size_ - sizeof number, 'x');
    if (verify_ && memcmp(in_[i].data() + sizeof number, rest.data(), rest.size()) != 0)
      ServerProcess::fail("other bytes came back than were sent");
    ++received_;
  }

  const int fd_;
  const std::size_t size_;
  const bool verify_;
  std::string out_[kMaxWindow], in_[kMaxWindow];
  iovec out_parts_[kMaxWindow] = {}, in_parts_[kMaxWindow] = {};
  mmsghdr out_messages_[kMaxWindow] = {}, in_messages_[kMaxWindow] = {};
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::apart);
  const long size = std::clamp(bench_number(argc, argv, "size", 64), 8L, long(kMaxPacket));
  const long window = std::clamp(bench_number(argc, argv, "window", 64), 1L, long(kMaxWindow));
  const auto packets = std::uint64_t(bench_number(argc, argv, "packets", 0));
  const auto length = std::uint64_t(bench_number(argc, argv, "milliseconds", 300)) * 1000000;
  Flood flood(server.address(0), std::size_t(size), std::size_t(window),
              bench_number(argc, argv, "verify", 0) != 0);
  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  do {
    flood.turn(true);
  } while (packets > 0 ? flood.sent() < packets : bench_now_ns() - begin < length);
  const double seconds = double(bench_now_ns() - begin) * 1e-9;
  const double processor_ns = double(server.processor_ns() - begin_processor);
  const auto received = double(flood.received());
  while (flood.received() < flood.sent()) flood.turn(false);
  const ServerProcess::Tally told = server.end();
  bench_metric("packets_per_s", "1/s", received / seconds);
  bench_metric("processor_us", "us", processor_ns / 1e3 / received);
  bench_work("all_at_the_server", told.bytes == flood.sent() * std::uint64_t(size) ? 1 : 0);
  if (packets > 0) bench_work("enough", flood.sent() >= packets ? 1 : 0);
  bench_ops("packet", flood.sent());
  return 0;
}
