// epoll, and recvmmsg and sendmmsg by hand (with --batch 0 recvfrom and sendto): the bound.
#include <sys/epoll.h>

#include "harness/server.h"

namespace {

constexpr std::size_t kBatch = 64, kPacket = 2048;

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : fd_(socket),
        batch_(options.number("batch", 1) != 0),
        tally_(tally),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) bench_die("epoll_ctl");
  }

  void run() {
    epoll_event event;
    for (;;) {
      if (epoll_wait(epoll_, &event, 1, -1) != 1) continue;
      if (batch_)
        echo_many();
      else
        echo_each();
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  void echo_many() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts_[i] = {rooms_[i], kPacket};
      msghdr& header = messages_[i].msg_hdr;
      header = {};
      header.msg_name = &peers_[i];
      header.msg_namelen = sizeof peers_[i];
      header.msg_iov = &parts_[i];
      header.msg_iovlen = 1;
    }
    const int count = recvmmsg(fd_, messages_, kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      parts_[i].iov_len = messages_[i].msg_len;
      tally_.bytes += messages_[i].msg_len;
    }
    if (count > 0) sendmmsg(fd_, messages_, unsigned(count), MSG_DONTWAIT);
  }

  void echo_each() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      sockaddr_in peer;
      socklen_t length = sizeof peer;
      auto* address = reinterpret_cast<sockaddr*>(&peer);
      const ssize_t size = recvfrom(fd_, rooms_[0], kPacket, MSG_DONTWAIT, address, &length);
      if (size < 0) return;
      tally_.bytes += std::size_t(size);
      sendto(fd_, rooms_[0], std::size_t(size), MSG_DONTWAIT, address, length);
    }
  }

  const int fd_;
  const bool batch_;
  Tally& tally_;
  const int epoll_;
  char rooms_[kBatch][kPacket];
  sockaddr_in peers_[kBatch];
  iovec parts_[kBatch];
  mmsghdr messages_[kBatch];
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
