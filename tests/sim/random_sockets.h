// Random programs of calls on IP sockets, each run in two kernels, the system's and a World's: over
// 127.0.0.0/8, and one of four over IPv6 and any address as well. Each result, and the epoll events
// of each descriptor after it, are compared.
//
// The machines define the operations: tcp_parity_test.cc, udp_parity_test.cc.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/kernel/kernel.h"
#include "sim/kernels.h"
#include "spate/sim/world.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {

// An address of either family.
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
  std::uint32_t ip() const {  // The address of IPv4, or of a mapped one.
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

struct SocketStep {
  unsigned what;
  unsigned which;
  unsigned number;
};

enum class SocketTopic : std::uint8_t { connections, shared_ports, all_addresses };

// The addresses of one program.
struct SocketPlan {
  std::uint32_t network;     // Used by no other program.
  std::uint16_t first_port;  // The first of three.
  SocketTopic topic;
};

// The system's loopback. The kernel queues its packets for the processor that sent them, in order,
// and delivers them later. When a packet that we send afterwards has arrived, all earlier ones
// have, too. A reply to one of them is queued at the end, so several packets are sent.
class Loopback {
 public:
  Loopback() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &here);
    ::sched_setaffinity(0, sizeof(here), &here);
    sockaddr_in own{};
    socklen_t size = sizeof(own);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(fd_, reinterpret_cast<sockaddr*>(&own), size);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
    ::connect(fd_, reinterpret_cast<sockaddr*>(&own), size);
  }
  ~Loopback() {
    ::close(fd_);
    ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  void wait() const {
    constexpr int kMostAnswers = 5;  // The replies of a handshake, and of a connection's end.
    char byte = 0;
    for (int i = 0; i < kMostAnswers; ++i) {
      ::send(fd_, &byte, sizeof(byte), 0);
      ::recv(fd_, &byte, sizeof(byte), 0);
    }
  }

 private:
  const int fd_;
  cpu_set_t before_;
};

// One program in one kernel. Its text for each step is compared.
class SocketMachine {
 public:
  SocketMachine(const SocketMachine&) = delete;
  SocketMachine& operator=(const SocketMachine&) = delete;

  // The descriptor of the last step.
  std::size_t chosen() const { return chosen_; }

  // Waits until sent packets have arrived.
  void settle() const {
    while (sim::Kernel::current()->run_due_events()) {
    }
    loopback_.wait();
  }

  // Returns the epoll events of every descriptor.
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

 protected:
  SocketMachine(const Calls& calls, const SocketPlan& plan, const Loopback& loopback)
      : calls_(calls), plan_(plan), loopback_(loopback), set_(calls.epoll_create1(EPOLL_CLOEXEC)) {}
  ~SocketMachine() {
    for (const int fd : fds_)
      if (fd >= 0) calls_.close(fd);
    calls_.close(set_);
  }

  static std::string answer(long result) {
    return result < 0 ? std::string(strerrorname_np(errno)) : std::to_string(result);
  }

  // ---- descriptors
  // Returns the descriptor to use; -1: there is no open one.
  int choose(unsigned which) {
    chosen_ = open_.empty() ? 0 : open_[which % open_.size()];
    return open_.empty() ? -1 : fds_[chosen_];
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
    return plan_.topic == SocketTopic::all_addresses && number % 2 == 0 ? AF_INET6 : AF_INET;
  }

  // Closes a descriptor. Returns its number; -1: there was no open one.
  int close(unsigned which, std::string& said) {
    said = "nothing";
    if (open_.empty()) return -1;
    const std::size_t number = open_[which % open_.size()];
    std::erase(open_, number);
    const int fd = std::exchange(fds_[number], -1);
    said = std::to_string(number) + ' ' + answer(calls_.close(fd));
    return fd;
  }

  // ---- addresses
  At name_of(int fd) const {
    At at;
    if (calls_.getsockname(fd, at.data(), &at.size) < 0) at = {};
    return at;
  }

  // Returns one of some addresses, with one of three ports, or port 0.
  At address_of(int fd, unsigned number, unsigned ports) const {
    const unsigned chosen = number % ports;
    const auto port = static_cast<std::uint16_t>(chosen == 3 ? 0 : plan_.first_port + chosen);
    const unsigned which = number / 8 % 8;
    if (name_of(fd).is_v6()) return address_of_v6(which, port);
    if (plan_.topic == SocketTopic::all_addresses && which < 3) return At::of_v4(INADDR_ANY, port);
    return At::of_v4(plan_.network + 1 + which / 6, port);
  }

  At address_of_v6(unsigned which, std::uint16_t port) const {
    if (which < 3) return At::of_v6(in6addr_any, port);
    if (which < 5) return At::of_v6(in6addr_loopback, port);
    return At::mapped(which == 5 ? INADDR_ANY : plan_.network + 1 + which / 7, port);
  }

  // Returns an address in the form of a socket of that family, or the loopback's.
  static At seen_by(int family, const At& at) {
    if (at.is_v6() == (family == AF_INET6)) return at;
    if (!at.is_v6()) return At::mapped(at.ip(), at.port());
    return At::of_v4(at.is_mapped() ? at.ip() : INADDR_LOOPBACK, at.port());
  }

  // Ports that the kernel assigned are numbered in order of appearance.
  std::string text_of(const At& at) {
    const int chosen = at.port() - plan_.first_port;
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
           (at.ip() == INADDR_LOOPBACK ? "home:" : std::to_string(at.ip() - plan_.network) + ':');
  }

  // ---- calls
  std::string bind(int fd, unsigned number) {
    const At to = address_of(fd, number, 4);
    return text_of(to) + ' ' + answer(calls_.bind(fd, to.data(), to.size));
  }

  std::string names(int fd) {
    return name(calls_.getsockname, fd) + " peer " + name(calls_.getpeername, fd);
  }

  std::string error(int fd) {
    int error = -1;
    socklen_t size = sizeof(error);
    const int result = calls_.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return result < 0 ? answer(result) : std::to_string(error);
  }

  std::string share(int fd, unsigned number) {
    const int on = number % 4 == 0 ? 0 : 1;
    const bool is_port = number % 4 == 2 && plan_.topic == SocketTopic::shared_ports;
    const int name = is_port ? SO_REUSEPORT : SO_REUSEADDR;
    return (is_port ? "reuse port " : "reuse ") + std::to_string(on) + ' ' +
           answer(calls_.setsockopt(fd, SOL_SOCKET, name, &on, sizeof(on)));
  }

  std::string set_v6_only(int fd, unsigned number) {
    const int on = number % 3 == 0 ? 1 : 0;
    return "v6 only " + std::to_string(on) + ' ' +
           answer(calls_.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
  }

  // The next bytes to send.
  std::string bytes_to_send(std::size_t size) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>('a' + sent_++ % 26);
    return bytes;
  }

  const Calls& calls_;
  const SocketPlan plan_;
  const Loopback& loopback_;
  std::vector<int> fds_;           // By number; -1 if it is closed.
  std::vector<std::size_t> open_;  // Numbers.

 private:
  std::string name(decltype(&::getsockname) ask, int fd) {
    At at;
    const int result = ask(fd, at.data(), &at.size);
    return result < 0 ? answer(result) : text_of(at);
  }

  const int set_;
  std::map<std::uint16_t, std::size_t> ports_;
  std::size_t chosen_ = 0;
  unsigned sent_ = 0;
};

// Returns addresses of 127.0.0.0/8 that no other program of this process uses.
inline std::uint32_t next_network() {
  static std::uint32_t last = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint32_t>(Random(static_cast<std::uint64_t>(now)).below(0x7fff));
  }();
  last = last % 0x7fff + 1;
  return 127u << 24 | last << 9;
}

// Three ports.
inline std::uint16_t next_ports() {
  constexpr std::uint32_t kFirst = 10'000;  // Where the kernel's ephemeral ports begin.
  constexpr std::uint32_t kCount = 7'500;
  static std::uint32_t last = next_network() % kCount;
  last = (last + 1) % kCount;
  return static_cast<std::uint16_t>(kFirst + 3 * last);
}

// Returns whether no process of the system uses the port, or did in the last minute.
inline bool is_unused(int type, const At& at) {
  const int fd = ::socket(at.is_v6() ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0);
  const bool is_unused = ::bind(fd, at.data(), at.size) == 0;
  ::close(fd);
  return is_unused;
}

inline bool is_unused(int type, const SocketPlan& plan) {
  for (int i = 0; i < 3; ++i) {
    const auto port = static_cast<std::uint16_t>(plan.first_port + i);
    const bool has_all = plan.topic == SocketTopic::all_addresses;
    if (has_all && !is_unused(type, At::of_v6(in6addr_any, port))) return false;
    if (!is_unused(type, At::of_v4(plan.network + 1, port))) return false;
    if (!is_unused(type, At::of_v4(plan.network + 2, port))) return false;
  }
  return true;
}

inline SocketPlan plan_of(int type, SocketTopic topic) {
  SocketPlan plan{.network = 0, .first_port = 0, .topic = topic};
  do {
    plan.network = next_network();
    plan.first_port = next_ports();
  } while (!is_unused(type, plan));
  return plan;
}

// The result of comparing a program.
struct Comparison {
  std::string difference;  // Empty: none.
  std::chrono::steady_clock::duration took;
  // True if the machine was so slow that timers of its kernel may have expired, while a World's
  // clock stands still.
  bool is_too_slow() const { return took > std::chrono::milliseconds{800}; }
};

template <class Machine>
std::string difference(std::uint64_t seed, int steps) {
  Random random(seed);
  sim::World world(seed);
  sim::Host& host = world.add_host("host");
  std::string story;
  return host.run([&](Loop&) -> std::string {
    const Loopback loopback;
    auto topic = random.one_in(8) ? SocketTopic::shared_ports : SocketTopic::connections;
    if (seed % 4 == 3) topic = SocketTopic::all_addresses;
    const SocketPlan plan = plan_of(Machine::kType, topic);
    Machine real(kReal, plan, loopback);
    Machine simulated(kSimulated, plan, loopback);
    for (int i = 0; i < steps; ++i) {
      const SocketStep step{static_cast<unsigned>(random.below(1000)),
                            static_cast<unsigned>(random.below(1000)),
                            static_cast<unsigned>(random.below(1000))};
      std::string found = simulated.step(step);
      std::string expected = real.step(step);
      real.settle();
      found += " |" + simulated.readiness();
      expected += " |" + real.readiness();
      story += expected + " on " + std::to_string(real.chosen()) + '\n';
      if (found != expected) return story + found + " in the World\n";
    }
    return "";
  });
}

template <class Machine>
Comparison compare(std::uint64_t seed, int steps) {
  const auto begin = std::chrono::steady_clock::now();
  std::string found = difference<Machine>(seed, steps);
  return {std::move(found), std::chrono::steady_clock::now() - begin};
}

// SPATE_STEPS in the environment sets the length of the programs.
inline int steps_of_each() {
  constexpr int kUsual = 60;
  const char* wanted = std::getenv("SPATE_STEPS");
  return wanted == nullptr ? kUsual : std::atoi(wanted);
}

// Returns a difference that occurs each time. Once in some hundred programs the system assigns one
// port to two sockets, as it may if they connect to different places. Empty as well if none of
// these programs counts.
template <class Machine>
std::string lasting_difference(std::uint64_t seed, int steps) {
  constexpr int kTimes = 3;
  constexpr int kTries = 12;
  int times = 0;
  for (int i = 0; i < kTries; ++i) {
    const Comparison compared = compare<Machine>(seed, steps);
    if (compared.difference.empty()) return "";
    if (!compared.is_too_slow() && ++times == kTimes) return compared.difference;
  }
  return "";
}

template <class Machine>
void expect_no_difference(std::uint64_t count) {
  const WithoutSigpipe quiet;
  for (const std::uint64_t seed : seeds(count))
    ASSERT_EQ(lasting_difference<Machine>(seed, steps_of_each()), "") << "seed " << seed;
}

}  // namespace spate::testing
