// The simulated TCP against the system's: random programs of calls on sockets, each made in both
// kernels, over 127.0.0.0/8, and one of four over IPv6 and any address as well. Each answer, and
// what epoll says of each descriptor after it, is compared.
//
// What may differ is not asked:
// * which port the kernel gives, only whether it gives one, and whose port is whose;
// * connections of a socket, or of a listener, that was shut down before: Linux hands that on;
// * who gets a connection of those that share a port (SO_REUSEPORT): such programs do not connect;
// * what time brings (a second try of a SYN, the end of TIME_WAIT, a delayed acknowledgement, after
//   which a port is no more in the way of connect()): a program takes less than a second, and the
//   World's clock stands still;
// * sizes of full buffers: all that is sent fits;
// * a socket that connects to itself, or two that connect to each other (which TCP makes one
//   connection of): there is none in a World;
// * an IPv6 socket that tries IPv4, in vain, and then IPv6: what Linux sends then is not heard;
// * Nagle's delay, which the library switches off and a World has not;
// * urgent data, which the library does not use.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sim/kernel/kernel.h"
#include "sim/kernels.h"
#include "spate/sim/world.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Of either family.
struct At {
  sockaddr_storage system{};
  socklen_t size = sizeof(system);

  sockaddr* data() { return reinterpret_cast<sockaddr*>(&system); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&system); }
  bool is_v6() const { return system.ss_family == AF_INET6; }
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(system); }
  const sockaddr_in6& v6() const { return reinterpret_cast<const sockaddr_in6&>(system); }
  std::uint16_t port() const { return ntohs(v4().sin_port); }  // In the same place.
  bool is_mapped() const { return is_v6() && IN6_IS_ADDR_V4MAPPED(&v6().sin6_addr); }
  std::uint32_t ip() const {  // Of IPv4, or mapped.
    if (!is_v6()) return ntohl(v4().sin_addr.s_addr);
    std::uint32_t ip = 0;
    std::memcpy(&ip, v6().sin6_addr.s6_addr + 12, sizeof(ip));
    return ntohl(ip);
  }

  static At of_v4(std::uint32_t ip, std::uint16_t port) {
    At at{.size = sizeof(sockaddr_in)};
    auto& system = reinterpret_cast<sockaddr_in&>(at.system);
    system.sin_family = AF_INET;
    system.sin_addr.s_addr = htonl(ip);
    system.sin_port = htons(port);
    return at;
  }
  static At of_v6(const in6_addr& ip, std::uint16_t port) {
    At at{.size = sizeof(sockaddr_in6)};
    auto& system = reinterpret_cast<sockaddr_in6&>(at.system);
    system.sin6_family = AF_INET6;
    system.sin6_addr = ip;
    system.sin6_port = htons(port);
    return at;
  }
  static At mapped(std::uint32_t ip, std::uint16_t port) {
    in6_addr v6{};
    v6.s6_addr[10] = v6.s6_addr[11] = 0xff;
    const std::uint32_t net = htonl(ip);
    std::memcpy(v6.s6_addr + 12, &net, sizeof(net));
    return of_v6(v6, port);
  }
};

struct TcpStep {
  unsigned what;
  unsigned which;
  unsigned number;
};

// One program in one kernel. What it says of each step is what is compared.
class TcpMachine {
 public:
  enum class Topic : std::uint8_t { connections, shared_ports, all_addresses };
  TcpMachine(const Calls& calls, std::uint32_t network, std::uint16_t first_port, Topic topic)
      : calls_(calls),
        network_(network),
        first_port_(first_port),
        topic_(topic),
        set_(calls.epoll_create1(EPOLL_CLOEXEC)) {}
  ~TcpMachine() {
    for (const int fd : fds_)
      if (fd >= 0) calls_.close(fd);
    calls_.close(set_);
  }
  TcpMachine(const TcpMachine&) = delete;
  TcpMachine& operator=(const TcpMachine&) = delete;

  std::string step(const TcpStep& step) {
    const unsigned number = step.number;
    chosen_ = open_.empty() ? 0 : open_[step.which % open_.size()];
    const int fd = open_.empty() ? -1 : fds_[open_[step.which % open_.size()]];
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
        return "name " + name(calls_.getsockname, fd) + " peer " + name(calls_.getpeername, fd);
      case 21:
        return "serve " + serve(number);
      case 22:
      case 23:
        return "pair " + join(number);
      default:
        return "client " + begin(number);
    }
  }

  // Of the last step.
  std::size_t chosen() const { return chosen_; }

  // What epoll says of every descriptor.
  std::string readiness() {
    std::string text;
    epoll_event events[64];
    std::map<std::uint32_t, std::uint32_t> found;
    const int count = calls_.epoll_wait(set_, events, 64, 0);
    for (int i = 0; i < count; ++i) found[events[i].data.u32] = events[i].events;
    for (std::uint32_t i = 0; i < fds_.size(); ++i) {
      if (fds_[i] >= 0) text += ' ' + std::to_string(found[i]);
      if (fds_[i] < 0) text += " -";
    }
    return text;
  }

 private:
  static std::string answer(long result) {
    return result < 0 ? std::string(strerrorname_np(errno)) : std::to_string(result);
  }

  std::string keep(long fd) {
    if (fd < 0) return answer(fd);
    epoll_event wish{};
    wish.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
    wish.data.u32 = static_cast<std::uint32_t>(fds_.size());
    calls_.epoll_ctl(set_, EPOLL_CTL_ADD, static_cast<int>(fd), &wish);
    open_.push_back(fds_.size());
    fds_.push_back(static_cast<int>(fd));
    return "as " + std::to_string(fds_.size() - 1);
  }

  int family_by(unsigned number) const {
    return topic_ == Topic::all_addresses && number % 2 == 0 ? AF_INET6 : AF_INET;
  }

  std::string open(int family) {
    const int fd = calls_.socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    calls_.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return keep(fd);
  }

  At name_of(int fd) const {
    At at;
    if (calls_.getsockname(fd, at.data(), &at.size) < 0) at = {};
    return at;
  }

  // One of some addresses, and of three ports, or none.
  At address_of(int fd, unsigned number, unsigned ports) const {
    const unsigned chosen = number % ports;
    const auto port = static_cast<std::uint16_t>(chosen == 3 ? 0 : first_port_ + chosen);
    const unsigned which = number / 8 % 8;
    if (name_of(fd).is_v6()) return address_of_v6(which, port);
    if (topic_ == Topic::all_addresses && which < 3) return At::of_v4(INADDR_ANY, port);
    return At::of_v4(network_ + 1 + which / 6, port);
  }

  At address_of_v6(unsigned which, std::uint16_t port) const {
    if (which < 3) return At::of_v6(in6addr_any, port);
    if (which < 5) return At::of_v6(in6addr_loopback, port);
    return At::mapped(which == 5 ? INADDR_ANY : network_ + 1 + which / 7, port);
  }

  std::string bind(int fd, unsigned number) {
    const At to = address_of(fd, number, 4);
    return text_of(to) + ' ' + answer(calls_.bind(fd, to.data(), to.size));
  }

  std::string connect(int fd, unsigned number) {
    const At to = address_of(fd, number, 3);
    if (is_bound_to(fd, to)) return "itself";
    if (is_called_from(fd, to)) return "each other";
    if (topic_ == Topic::shared_ports || spoilt_.contains(fd)) return "nothing";
    const bool is_v4 = to.is_mapped() || name_of(fd).is_mapped();
    if (to.is_v6() && !is_v4 && has_tried_v4_.contains(fd)) return "nothing";
    if (is_v4) has_tried_v4_.insert(fd);
    called_[fd] = to.port();
    return text_of(to) + ' ' + answer(calls_.connect(fd, to.data(), to.size));
  }

  // Whether a socket of that port tries to connect to this one's.
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

  // Or might be, if one of them is any address.
  bool is_bound_to(int fd, const At& address) const {
    const At own = name_of(fd);
    return own.port() == address.port() &&
           (topic_ == Topic::all_addresses || own.ip() == address.ip());
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

  // A server, a client of it, and the connection's other end.
  std::string join(unsigned number) {
    std::string said = serve(number / 9) + ' ';
    const int listener = fds_.back();
    const At at = name_of(listener);
    if (topic_ == Topic::shared_ports) return said;
    if (topic_ == Topic::connections && at.ip() == 0) return said;
    const int family = family_by(number / 4);
    said += open(family);
    const int client = fds_.back();
    const At to = seen_by(family, at);
    if (number % 3 == 0) said += ' ' + bind(client, number / 5);
    if (is_bound_to(client, to)) return said + " itself";
    said += ' ' + answer(calls_.connect(client, to.data(), to.size));
    while (sim::Kernel::current()->happen()) {
    }
    return said + ' ' + accept(listener);
  }

  // An address as a socket of that family would write it, or the loopback's.
  static At seen_by(int family, const At& at) {
    if (at.is_v6() == (family == AF_INET6)) return at;
    if (!at.is_v6()) return At::mapped(at.ip(), at.port());
    return At::of_v4(at.is_mapped() ? at.ip() : INADDR_LOOPBACK, at.port());
  }

  std::string accept(int fd) {
    At from;
    const int accepted = calls_.accept4(fd, from.data(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return keep(accepted) + (accepted < 0 ? "" : " from " + text_of(from));
  }

  std::string send(int fd, std::size_t size) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>('a' + sent_++ % 26);
    return answer(calls_.send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  std::string receive(int fd, std::size_t size, int flags) {
    std::string bytes(size, '\0');
    const long result = calls_.recv(fd, bytes.data(), bytes.size(), flags);
    return result < 0 ? answer(result) : '"' + bytes.substr(0, static_cast<std::size_t>(result));
  }

  std::string close(unsigned which) {
    if (open_.empty()) return "nothing";
    const std::size_t number = open_[which % open_.size()];
    std::erase(open_, number);
    spoilt_.erase(fds_[number]);
    called_.erase(fds_[number]);
    has_tried_v4_.erase(fds_[number]);
    return std::to_string(number) + ' ' + answer(calls_.close(std::exchange(fds_[number], -1)));
  }

  std::string error(int fd) {
    int error = -1;
    socklen_t size = sizeof(error);
    const int result = calls_.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return result < 0 ? answer(result) : std::to_string(error);
  }

  std::string set_v6_only(int fd, unsigned number) {
    const int on = number % 3 == 0 ? 1 : 0;
    return "v6 only " + std::to_string(on) + ' ' +
           answer(calls_.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
  }

  std::string set_option(int fd, unsigned number) {
    const linger lingering{.l_onoff = static_cast<int>(number / 4 % 2), .l_linger = 0};
    if (number % 4 == 3)
      return "linger " +
             answer(calls_.setsockopt(fd, SOL_SOCKET, SO_LINGER, &lingering, sizeof(lingering)));
    const int on = number % 4 == 0 ? 0 : 1;
    const bool is_port = number % 4 == 2 && topic_ == Topic::shared_ports;
    const int name = is_port ? SO_REUSEPORT : SO_REUSEADDR;
    return (is_port ? "reuse port " : "reuse ") + std::to_string(on) + ' ' +
           answer(calls_.setsockopt(fd, SOL_SOCKET, name, &on, sizeof(on)));
  }

  std::string name(decltype(&::getsockname) ask, int fd) {
    At at;
    const int result = ask(fd, at.data(), &at.size);
    return result < 0 ? answer(result) : text_of(at);
  }

  // Ports that the kernel gave are numbered as they are seen.
  std::string text_of(const At& at) {
    const int chosen = at.port() - first_port_;
    if (at.port() == 0 || (chosen >= 0 && chosen < 3))
      return host_of(at) + std::to_string(at.port() == 0 ? 0 : chosen + 1);
    const auto number = ports_.try_emplace(at.port(), ports_.size()).first->second;
    return host_of(at) + 'p' + std::to_string(number);
  }

  std::string host_of(const At& at) const {
    if (at.is_v6() && !at.is_mapped()) {
      const bool is_any = IN6_IS_ADDR_UNSPECIFIED(&at.v6().sin6_addr);
      const bool is_home = IN6_IS_ADDR_LOOPBACK(&at.v6().sin6_addr);
      return is_any ? "any6:" : is_home ? "home6:" : "strange:";
    }
    const std::string before = at.is_mapped() ? "mapped " : "";
    if (at.ip() == 0) return before + "any:";
    return before +
           (at.ip() == INADDR_LOOPBACK ? "home:" : std::to_string(at.ip() - network_) + ':');
  }

  const Calls& calls_;
  const std::uint32_t network_;     // Of this program alone.
  const std::uint16_t first_port_;  // Of three.
  const Topic topic_;
  const int set_;
  std::vector<int> fds_;                 // By number; -1 if it is closed.
  std::vector<std::size_t> open_;        // Numbers.
  std::set<int> spoilt_;                 // Shut down while there was no connection.
  std::set<int> has_tried_v4_;           // By an IPv6 socket's connect().
  std::map<int, std::uint16_t> called_;  // The port that connect() has named last.
  std::map<std::uint16_t, std::size_t> ports_;
  std::size_t chosen_ = 0;
  unsigned sent_ = 0;
};

// Addresses of 127.0.0.0/8 that no other program of this process has, and hardly one of another's.
std::uint32_t next_network() {
  static std::uint32_t last = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint32_t>(Random(static_cast<std::uint64_t>(now)).below(0x7fff));
  }();
  last = last % 0x7fff + 1;
  return 127u << 24 | last << 9;
}

// Three ports that no program of the last minute has had, for those that bind to any address.
std::uint16_t next_ports() {
  constexpr std::uint32_t kFirst = 10'000;  // To where ports begin that the kernel gives.
  constexpr std::uint32_t kCount = 7'500;
  static std::uint32_t last = next_network() % kCount;
  last = (last + 1) % kCount;
  return static_cast<std::uint16_t>(kFirst + 3 * last);
}

// What the system's TCP does, it does at once, but not always in the call that brings it about.
std::string settled(TcpMachine& real, const std::string& expected) {
  const auto end = std::chrono::steady_clock::now() + 300ms;
  for (;;) {
    std::string found = real.readiness();
    if (found == expected || std::chrono::steady_clock::now() > end) return found;
    std::this_thread::sleep_for(100us);
  }
}

// What differs; empty: nothing.
std::string difference(std::uint64_t seed, int steps) {
  Random random(seed);
  sim::World world(seed);
  sim::Host& host = world.add_host("host");
  std::string story;
  return host.run([&](Loop&) -> std::string {
    const std::uint32_t network = next_network();
    auto topic =
        random.one_in(8) ? TcpMachine::Topic::shared_ports : TcpMachine::Topic::connections;
    if (seed % 4 == 3) topic = TcpMachine::Topic::all_addresses;
    const std::uint16_t ports =
        topic == TcpMachine::Topic::all_addresses ? next_ports() : std::uint16_t{7001};
    TcpMachine real(kReal, network, ports, topic);
    TcpMachine simulated(kSimulated, network, ports, topic);
    for (int i = 0; i < steps; ++i) {
      const TcpStep step{static_cast<unsigned>(random.below(1000)),
                         static_cast<unsigned>(random.below(1000)),
                         static_cast<unsigned>(random.below(1000))};
      std::string found = simulated.step(step);
      std::string expected = real.step(step);
      while (sim::Kernel::current()->happen()) {
      }
      const std::string ready = simulated.readiness();
      found += " |" + ready;
      expected += " |" + settled(real, ready);
      story += expected + " on " + std::to_string(real.chosen()) + '\n';
      if (found != expected) return story + found + " in the World\n";
    }
    return "";
  });
}

// Twice, since another process may have had one of the ports.
TEST(TcpParity, OfRandomPrograms) {
  const WithoutSigpipe quiet;
  for (const std::uint64_t seed : seeds(300)) {
    if (difference(seed, 60).empty()) continue;
    ASSERT_EQ(difference(seed, 60), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace spate::testing
