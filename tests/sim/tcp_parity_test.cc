// The simulated TCP against the system's: random_sockets.h.
//
// Allowed differences, which the programs avoid:
// * which port the kernel gives, only whether it gives one, and whose port is whose;
// * connections of a socket, or of a listener, that was shut down before: Linux preserves the
//   shutdown;
// * which of the listeners on one port (SO_REUSEPORT) gets a connection: such programs do not
//   connect;
// * timers (a second SYN, the end of TIME_WAIT, a delayed acknowledgement, after which a port no
//   longer blocks connect()): the World's clock stands still, and the result of a slow program does
//   not count;
// * sizes of full buffers: all that is sent fits;
// * a socket that connects to itself, or two that connect to each other (which TCP makes one
//   connection): a World does not support this;
// * an IPv6 socket that tries IPv4, fails, and then tries IPv6: the packets that Linux sends then
//   get no reply;
// * Nagle's delay, which the library switches off and a World does not have;
// * urgent data, which the library does not use.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/random_sockets.h"

namespace spate::testing {
namespace {

class TcpMachine final : public SocketMachine {
 public:
  static constexpr int kType = SOCK_STREAM;

  TcpMachine(const Calls& calls, const SocketPlan& plan, const Loopback& loopback)
      : SocketMachine(calls, plan, loopback) {}

  std::string step(const SocketStep& step) {
    const unsigned number = step.number;
    const int fd = choose(step.which);
    switch (step.what % 26) {
      case 0:
        return "socket " + open(family_by(number));
      case 1:
      case 2:
        return "bind " + bind(fd, number);
      case 3:
      case 4:
        return "listen " + listen(fd, static_cast<int>(number % 3));
      case 5:
      case 6:
      case 7:
        return "connect " + connect(fd, number);
      case 8:
      case 9:
        return "accept " + accept(fd);
      case 10:
      case 11:
        return "send " + send(fd, 1 + number % 300);
      case 12:
      case 13:
        return "receive " + receive(fd, 1 + number % 400, 0);
      case 14:
        return "peek " + receive(fd, 1 + number % 50, MSG_PEEK);
      case 15:
        return "shutdown " + shut_down(fd, static_cast<int>(number % 3));
      case 16:
      case 17:
        return "close " + close(step.which);
      case 18:
        return "error " + error(fd);
      case 19:
        return "option " + set_option(fd, number);
      case 20:
        return "name " + names(fd);
      case 21:
        return "serve " + serve(number);
      case 22:
      case 23:
        return "pair " + join(number);
      default:
        return "client " + begin(number);
    }
  }

 private:
  std::string open(int family) {
    const int fd = calls_.socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    calls_.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return keep(fd);
  }

  std::string connect(int fd, unsigned number) {
    const At to = address_of(fd, number, 3);
    if (is_bound_to(fd, to)) return "itself";
    if (is_called_from(fd, to)) return "each other";
    if (plan_.topic == SocketTopic::shared_ports || spoilt_.contains(fd)) return "nothing";
    const bool is_v4 = to.is_mapped() || name_of(fd).is_mapped();
    if (to.is_v6() && !is_v4 && has_tried_v4_.contains(fd)) return "nothing";
    if (is_v4) has_tried_v4_.insert(fd);
    called_[fd] = to.port();
    return text_of(to) + ' ' + answer(calls_.connect(fd, to.data(), to.size));
  }

  // Returns whether a socket of that port tries to connect to this one's.
  bool is_called_from(int fd, const At& address) const {
    const std::uint16_t own = name_of(fd).port();
    return std::ranges::any_of(called_, [&](const auto& call) {
      return own == call.second && name_of(call.first).port() == address.port();
    });
  }

  std::string listen(int fd, int backlog) {
    return spoilt_.contains(fd) ? "nothing" : answer(calls_.listen(fd, backlog));
  }

  std::string shut_down(int fd, int how) {
    const int result = calls_.shutdown(fd, how);
    if (result < 0 && errno == ENOTCONN) spoilt_.insert(fd);
    return std::to_string(how) + ' ' + answer(result);
  }

  // They may be equal, if one of them is any address.
  bool is_bound_to(int fd, const At& address) const {
    const At own = name_of(fd);
    return own.port() == address.port() &&
           (plan_.topic == SocketTopic::all_addresses || own.ip() == address.ip());
  }

  std::string serve(unsigned number) {
    std::string said = open(family_by(number / 11));
    const int fd = fds_.back();
    said += ' ' + set_option(fd, number / 7 % 4);
    if (name_of(fd).is_v6()) said += ' ' + set_v6_only(fd, number / 13);
    said += ' ' + bind(fd, number);
    return said + ' ' + listen(fd, static_cast<int>(number / 3 % 3));
  }

  std::string begin(unsigned number) {
    const std::string said = open(family_by(number / 11));
    return said + ' ' + connect(fds_.back(), number);
  }

  // Makes a server, a client of it, and the connection's other end.
  std::string join(unsigned number) {
    std::string said = serve(number / 9) + ' ';
    const int listener = fds_.back();
    const At at = name_of(listener);
    if (plan_.topic == SocketTopic::shared_ports) return said;
    if (plan_.topic == SocketTopic::connections && at.ip() == 0) return said;
    const int family = family_by(number / 4);
    said += open(family);
    const int client = fds_.back();
    const At to = seen_by(family, at);
    if (number % 3 == 0) said += ' ' + bind(client, number / 5);
    if (is_bound_to(client, to)) return said + " itself";
    said += ' ' + answer(calls_.connect(client, to.data(), to.size));
    settle();
    return said + ' ' + accept(listener);
  }

  std::string accept(int fd) {
    At from;
    const int accepted = calls_.accept4(fd, from.data(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return keep(accepted) + (accepted < 0 ? "" : " from " + text_of(from));
  }

  std::string send(int fd, std::size_t size) {
    const std::string bytes = bytes_to_send(size);
    return answer(calls_.send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  std::string receive(int fd, std::size_t size, int flags) {
    std::string bytes(size, '\0');
    const long result = calls_.recv(fd, bytes.data(), bytes.size(), flags);
    return result < 0 ? answer(result) : '"' + bytes.substr(0, static_cast<std::size_t>(result));
  }

  std::string close(unsigned which) {
    std::string said;
    const int fd = SocketMachine::close(which, said);
    spoilt_.erase(fd);
    called_.erase(fd);
    has_tried_v4_.erase(fd);
    return said;
  }

  std::string set_option(int fd, unsigned number) {
    if (number % 5 == 0) return set_v6_only(fd, number / 5);
    if (number % 4 != 3) return share(fd, number);
    const linger lingering{.l_onoff = static_cast<int>(number / 4 % 2), .l_linger = 0};
    return "linger " +
           answer(calls_.setsockopt(fd, SOL_SOCKET, SO_LINGER, &lingering, sizeof(lingering)));
  }

  std::set<int> spoilt_;                 // Shut down without a connection.
  std::set<int> has_tried_v4_;           // Tried by an IPv6 socket's connect().
  std::map<int, std::uint16_t> called_;  // The port of the last connect().
};

TEST(TcpParity, HoldsForRandomPrograms) { expect_no_difference<TcpMachine>(300); }

}  // namespace
}  // namespace spate::testing
