// The simulated UDP against the system's: random_sockets.h.
//
// Allowed differences, which the programs avoid:
// * which port the kernel gives, only whether it gives one, and whose port is whose;
// * which of the sockets on one port (SO_REUSEPORT) gets a packet: such programs do not send;
// * how many packets a buffer holds: only that it holds the first ones;
// * an IPv6 socket that connects to an address of IPv6 and to one of IPv4: Linux keeps the address
//   that it has sent from first;
// * an IPv6 socket that disconnects: Linux still accepts only packets of its last peer's address;
// * which of the sockets on one address (SO_REUSEADDR) gets a packet, if one was connected before:
//   Linux prefers the one that received a packet on the same processor, or that connected first;
// * packets that are sent together, and of which the first is refused by a connected socket's peer:
//   whether the others are sent depends on when its kernel looks.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <map>
#include <string>
#include <vector>

#include "sim/random_sockets.h"

namespace spate::testing {
namespace {

class UdpMachine final : public SocketMachine {
 public:
  static constexpr int kType = SOCK_DGRAM;

  UdpMachine(const Calls& calls, const SocketPlan& plan, const Loopback& loopback)
      : SocketMachine(calls, plan, loopback) {}

  std::string step(const SocketStep& step) {
    const unsigned number = step.number;
    const int fd = choose(step.which);
    switch (step.what % 32) {
      case 0:
        return "socket " + open(family_by(number));
      case 1:
      case 2:
        return "bind " + bind(fd, number);
      case 3:
      case 4:
        return "connect " + connect(fd, number);
      case 5:
        return "disconnect " + disconnect(fd);
      case 21:
        return "shutdown " + std::to_string(number % 4) + ' ' +
               answer(calls_.shutdown(fd, static_cast<int>(number % 4)));
      case 22:
        return "close " + close(step.which);
      case 23:
        return "error " + error(fd);
      case 24:
        return "option " + (number % 5 == 0 ? set_v6_only(fd, number / 5) : share(fd, number));
      case 25:
        return "name " + names(fd);
      case 26:
        return "poll " + poll(fd);
      case 27:
        return "fill " + fill(number);
      case 28:
      case 29:
        return "serve " + serve(number);
      case 30:
      case 31:
        return "client " + begin(number);
      default:
        return transfer(step, fd);
    }
  }

 private:
  std::string transfer(const SocketStep& step, int fd) {
    const unsigned number = step.number;
    switch (step.what % 32) {
      case 6:
      case 7:
      case 8:
        return "send " + send(fd, number % 300);
      case 9:
      case 10:
      case 11:
        return "send to " + send_to(fd, number, number % 200);
      case 12:
        return "send much " + send_much(fd, number);
      case 13:
        return "send some " + send_some(fd, number);
      case 18:
        return "peek " + receive(fd, number % 50, MSG_PEEK);
      case 19:
        return "whole " + receive(fd, number % 50, MSG_TRUNC);
      case 20:
        return "receive some " + receive_some(fd);
      default:
        return "receive " + receive(fd, number % 400, 0);
    }
  }
  std::string open(int family) {
    return keep(calls_.socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }

  // ---- destinations
  // Returns a port of the program's, or the address of one of its sockets.
  At target_of(int fd, unsigned number, unsigned ports) const {
    if (number % 3 != 0 || open_.empty()) return address_of(fd, number / 3, ports);
    const int other = fds_[open_[number / 3 % open_.size()]];
    return seen_by(name_of(fd).is_v6() ? AF_INET6 : AF_INET, name_of(other));
  }

  std::string connect(int fd, unsigned number) {
    const At to = target_of(fd, number, 3);
    if (to.port() == 0 || (may_share(fd) && is_connected(fd))) return "nothing";
    const bool is_v4 = to.is_mapped() || name_of(fd).is_mapped();
    const auto before = is_connected_to_v4_.find(fd);
    if (to.is_v6() && before != is_connected_to_v4_.end() && before->second != is_v4)
      return "nothing";
    const std::string said = text_of(to);
    // An IPv6 socket takes an address of IPv4 in either form.
    const At written = to.is_mapped() && number % 2 == 0 ? seen_by(AF_INET, to) : to;
    const socklen_t size = number % 31 == 0 ? sizeof(sa_family_t) : written.size;
    const int result = calls_.connect(fd, written.data(), size);
    if (result == 0 && to.is_v6()) is_connected_to_v4_[fd] = is_v4;
    return said + (written.is_v6() ? " " : " as IPv4 ") + answer(result);
  }

  std::string disconnect(int fd) {
    if (name_of(fd).is_v6() || may_share(fd)) return "nothing";
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    return answer(calls_.connect(fd, &nobody, sizeof(nobody)));
  }

  bool may_share(int fd) const {
    int on = 0;
    socklen_t size = sizeof(on);
    return calls_.getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, &size) == 0 && on != 0;
  }

  std::string serve(unsigned number) {
    std::string said = open(family_by(number / 11));
    const int fd = fds_.back();
    if (number % 2 == 0) said += ' ' + share(fd, number / 7);
    if (name_of(fd).is_v6()) said += ' ' + set_v6_only(fd, number / 13);
    return said + ' ' + bind(fd, number);
  }

  std::string begin(unsigned number) {
    const std::string said = open(family_by(number / 11));
    return said + ' ' + connect(fds_.back(), number);
  }

  std::string close(unsigned which) {
    std::string said;
    is_connected_to_v4_.erase(SocketMachine::close(which, said));
    return said;
  }

  // ---- sending
  bool may_send() const { return plan_.topic != SocketTopic::shared_ports; }

  std::string send(int fd, std::size_t size) {
    if (!may_send()) return "nothing";
    const std::string bytes = bytes_to_send(size);
    return answer(calls_.send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  std::string send_to(int fd, unsigned number, std::size_t size) {
    if (!may_send()) return "nothing";
    const At to = target_of(fd, number, 4);
    const std::string bytes = bytes_to_send(size);
    return text_of(to) + ' ' + std::to_string(size) + ' ' +
           answer(calls_.sendto(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, to.data(), to.size));
  }

  // About the maximum size of a packet, of IPv4 and of IPv6.
  std::string send_much(int fd, unsigned number) {
    constexpr std::size_t kSizes[] = {65506, 65507, 65508, 65527, 65528, 65535, 65536, 100'000};
    const std::size_t size = kSizes[number % std::size(kSizes)];
    if (number % 16 < 8) return std::to_string(size) + ' ' + send(fd, size);
    return send_to(fd, number / 16, size);
  }

  std::string send_some(int fd, unsigned number) {
    if (!may_send() || is_connected(fd)) return "nothing";
    const At to = target_of(fd, number, 4);
    std::vector<std::string> bytes;
    for (unsigned i = 0; i <= number % 4; ++i) bytes.push_back(bytes_to_send(10 * i));
    std::vector<iovec> pieces(bytes.size());
    std::vector<mmsghdr> messages(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      pieces[i] = {.iov_base = bytes[i].data(), .iov_len = bytes[i].size()};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_name = const_cast<sockaddr*>(to.data());
      messages[i].msg_hdr.msg_namelen = to.size;
    }
    const auto count = static_cast<unsigned>(messages.size());
    return text_of(to) + ' ' + std::to_string(count) + ' ' +
           answer(calls_.sendmmsg(fd, messages.data(), count, MSG_NOSIGNAL));
  }

  bool is_connected(int fd) const {
    At peer;
    return calls_.getpeername(fd, peer.data(), &peer.size) == 0;
  }

  // ---- receiving
  std::string told(const msghdr& message, const At& from, std::string_view bytes) {
    std::string said = " \"" + std::string(bytes);
    if (bytes.size() > 300) said = ' ' + std::to_string(bytes.size()) + " bytes";
    if ((message.msg_flags & MSG_TRUNC) != 0) said += " cut";
    return said + " from " + text_of(from);
  }

  std::string receive(int fd, std::size_t size, int flags) {
    std::string bytes(size, '\0');
    At from;
    iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_name = from.data();
    message.msg_namelen = from.size;
    const long result = calls_.recvmsg(fd, &message, flags);
    if (result < 0) return answer(result);
    bytes.resize(std::min(size, static_cast<std::size_t>(result)));
    return answer(result) + told(message, from, bytes);
  }

  std::string receive_some(int fd) {
    constexpr std::size_t kMost = 4;
    std::string bytes[kMost];
    At from[kMost];
    iovec pieces[kMost];
    mmsghdr messages[kMost] = {};
    for (std::size_t i = 0; i < kMost; ++i) {
      bytes[i].resize(100);
      pieces[i] = {.iov_base = bytes[i].data(), .iov_len = bytes[i].size()};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_name = from[i].data();
      messages[i].msg_hdr.msg_namelen = from[i].size;
    }
    const int count = calls_.recvmmsg(fd, messages, kMost, 0, nullptr);
    std::string said = answer(count);
    for (std::size_t i = 0; count > 0 && i < static_cast<std::size_t>(count); ++i)
      said += told(messages[i].msg_hdr, from[i], bytes[i].substr(0, messages[i].msg_len));
    return said;
  }

  std::string poll(int fd) {
    pollfd one{.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP, .revents = 0};
    if (fd >= 0) calls_.poll(&one, 1, 0);
    return std::to_string(one.revents);
  }

  // More packets than fit, to a socket that exists for this alone.
  std::string fill(unsigned number) {
    constexpr int kPackets = 20;
    const int from = calls_.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int to = calls_.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int room = 4096;
    calls_.setsockopt(to, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    At at = At::of_v4(INADDR_LOOPBACK, 0);
    calls_.bind(to, at.data(), at.size);
    at = name_of(to);
    calls_.connect(from, at.data(), at.size);
    // The first fits, however large it is.
    std::string bytes(number % 2 == 0 ? 2000 : 30'000, 'x');
    long refused = 0;
    for (int i = 0; i < kPackets; ++i) {
      bytes[0] = static_cast<char>(i);
      refused += calls_.send(from, bytes.data(), bytes.size(), 0) < 0 ? 1 : 0;
    }
    settle();
    std::string said = std::to_string(refused) + " refused, ";
    int count = 0;
    while (calls_.recv(to, bytes.data(), bytes.size(), 0) > 0 && bytes[0] == count) ++count;
    said += count == 0 ? "none" : count < kPackets / 2 ? "some" : "too many";
    calls_.send(from, bytes.data(), 1, 0);
    settle();
    said += " and " + answer(calls_.recv(to, bytes.data(), bytes.size(), 0));
    calls_.close(from);
    calls_.close(to);
    return said;
  }

  std::map<int, bool> is_connected_to_v4_;  // By IPv6 socket that was ever connected.
};

TEST(UdpParity, HoldsForRandomPrograms) { expect_no_difference<UdpMachine>(300); }

}  // namespace
}  // namespace spate::testing
