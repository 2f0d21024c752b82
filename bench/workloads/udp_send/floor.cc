// epoll, recvmmsg and sendmmsg by hand, with UDP_SEGMENT or without: the bound.
#include <linux/udp.h>
#include <sys/epoll.h>

#include "harness/server.h"
#include "workloads/udp_send/train.h"

namespace {

constexpr std::size_t kBatch = 64;

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : fd_(socket),
        segments_(options.number("segments", 1) != 0),
        tally_(tally),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) bench_die("epoll_ctl");
    for (std::size_t i = 0; i < kBatch; ++i) prepare(i);
  }

  void run() {
    epoll_event event;
    for (;;) {
      if (epoll_wait(epoll_, &event, 1, -1) == 1) answer();
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  void prepare(std::size_t i) {
    const std::size_t size = segments_ ? sizeof train_.bytes : kPacket;
    request_parts_[i] = {requests_[i], kRequest};
    requests_of_[i].msg_hdr.msg_iov = &request_parts_[i];
    requests_of_[i].msg_hdr.msg_iovlen = 1;
    requests_of_[i].msg_hdr.msg_name = &peers_[i];
    parts_[i] = {train_.bytes + (segments_ ? 0 : i % kTrain * kPacket), size};
    msghdr& header = messages_[i].msg_hdr;
    header.msg_iov = &parts_[i];
    header.msg_iovlen = 1;
    header.msg_namelen = sizeof peers_[i];
    if (!segments_) return;
    header.msg_control = control_;
    header.msg_controllen = sizeof control_;
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = IPPROTO_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const std::uint16_t segment = kPacket;
    memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }

  void answer() {
    for (mmsghdr& request : requests_of_) request.msg_hdr.msg_namelen = sizeof peers_[0];
    const int count = recvmmsg(fd_, requests_of_, kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) tally_.bytes += requests_of_[i].msg_len;
    const std::size_t each = segments_ ? 1 : kTrain;  // Messages for a request.
    const std::size_t at_once = kBatch / each;
    for (int first = 0; first < count; first += int(at_once))
      send(std::size_t(first), std::min(at_once, std::size_t(count - first)), each);
  }

  void send(std::size_t first, std::size_t requests, std::size_t each) {
    for (std::size_t i = 0; i < requests * each; ++i)
      messages_[i].msg_hdr.msg_name = &peers_[first + i / each];
    const auto count = unsigned(requests * each);
    if (sendmmsg(fd_, messages_, count, MSG_DONTWAIT) != int(count))
      bench_die("a packet was not sent");
  }

  const int fd_;
  const bool segments_;
  Tally& tally_;
  const int epoll_;
  Train train_;
  char requests_[kBatch][kRequest];
  sockaddr_in peers_[kBatch];
  iovec request_parts_[kBatch], parts_[kBatch];
  mmsghdr requests_of_[kBatch] = {}, messages_[kBatch] = {};
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(std::uint16_t))] = {};
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
