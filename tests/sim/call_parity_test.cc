// The simulated kernel against the real one: random programs of system calls on pairs of sockets,
// pipes and named sockets, each run in both. The results are compared one by one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sim/kernels.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

// One program in one kernel. Its text for each step is compared.
class Machine {
 public:
  Machine(const Calls& calls, std::string place) : calls_(calls), place_(std::move(place)) {}
  ~Machine() {
    for (int fd : fds_)
      if (fd >= 0) calls_.close(fd);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::string step(unsigned what, unsigned which, unsigned number) {
    const int fd = fds_.empty() ? -1 : fds_[which % fds_.size()];
    switch (what % 14) {
      case 0:
        return pair(number);
      case 1:
      case 2:
        return "send " + send(fd, 1 + number % 300, -1);
      case 3:
        return "pass " + send(fd, 1 + number % 10, pipe_end(number));
      case 4:
      case 5:
        return "receive " + receive(fd, 1 + number % 500, 0);
      case 6:
        return "peek " + receive(fd, 1 + number % 50, MSG_PEEK);
      case 7:
        return "shutdown " + answer(calls_.shutdown(fd, static_cast<int>(number % 3)));
      case 8:
        return "close " + close(which);
      case 9:
        return "listen " + listen(number);
      case 10:
        return "connect " + connect(number);
      case 11:
        return "accept " + accept(fd);
      case 12:
        return "read " + read(fd, 1 + number % 400);
      default:
        return "write " + write(fd, 1 + number % 400);
    }
  }

  // Returns the events that every descriptor is ready for.
  std::string readiness() {
    std::string text;
    for (int fd : fds_) {
      pollfd one{.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP, .revents = 0};
      if (fd >= 0) calls_.poll(&one, 1, 0);
      text += ' ' + std::to_string(one.revents);
    }
    return text;
  }

 private:
  static std::string answer(long result) {
    return result < 0 ? std::string("error ") + std::to_string(errno) : std::to_string(result);
  }
  std::string keep(long fd) {
    if (fd < 0) return answer(fd);
    fds_.push_back(static_cast<int>(fd));
    return "as " + std::to_string(fds_.size() - 1);
  }

  // The system closes sockets that are passed in a circle some time later, our kernel with the
  // World: so only ends of pipes are passed.
  int pipe_end(unsigned number) const {
    return pipe_ends_.empty() ? -1 : fds_[pipe_ends_[number % pipe_ends_.size()]];
  }

  std::string pair(unsigned number) {
    int made[2] = {-1, -1};
    const int type = number % 3 == 0 ? SOCK_DGRAM : SOCK_STREAM;
    const int result =
        number % 3 == 1 ? calls_.pipe2(made, O_CLOEXEC | O_NONBLOCK)
                        : calls_.socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, made);
    if (result == 0 && number % 3 == 1)
      pipe_ends_.insert(pipe_ends_.end(), {fds_.size(), fds_.size() + 1});
    if (result == 0) fds_.insert(fds_.end(), made, made + 2);
    return "pair " + answer(result);
  }

  std::string send(int fd, std::size_t size, int passed) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>('a' + sent_++ % 26);
    iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    if (passed >= 0) {
      message.msg_control = room;
      message.msg_controllen = sizeof(room);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &passed, sizeof(passed));
    }
    return answer(calls_.sendmsg(fd, &message, MSG_NOSIGNAL));
  }

  std::string receive(int fd, std::size_t size, int flags) {
    std::string bytes(size, '\0');
    iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * 8)] = {};
    if (flags == 0) {
      message.msg_control = room;
      message.msg_controllen = sizeof(room);
    }
    const long result = calls_.recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    if (result < 0) return answer(result);
    // Kernels differ in whether a peek without room reports truncation.
    const int said = flags == 0 ? message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) : 0;
    return bytes.substr(0, static_cast<std::size_t>(result)) + " flags " + std::to_string(said) +
           (flags == 0 ? descriptors_of(message) : std::string());
  }

  std::string descriptors_of(msghdr& message) {
    std::string text;
    cmsghdr* header = message.msg_controllen == 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (header == nullptr) return text;
    for (std::size_t at = CMSG_LEN(0); at < header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<char*>(header) + at, sizeof(fd));
      text += " passed " + keep(fd);
    }
    return text;
  }

  std::string read(int fd, std::size_t size) {
    std::string bytes(size, '\0');
    const long result = calls_.read(fd, bytes.data(), size);
    return result < 0 ? answer(result) : bytes.substr(0, static_cast<std::size_t>(result));
  }

  std::string write(int fd, std::size_t size) {
    return answer(calls_.write(fd, std::string(size, 'w').data(), size));
  }

  std::string close(unsigned which) {
    if (fds_.empty()) return "nothing";
    int& fd = fds_[which % fds_.size()];
    const std::string said = answer(fd < 0 ? 0 : calls_.close(fd));
    fd = -1;
    return said;
  }

  socklen_t address_of(unsigned number, sockaddr_un& address) const {
    address = {};
    address.sun_family = AF_UNIX;
    const std::string name = place_ + std::to_string(number % 3);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }

  std::string listen(unsigned number) {
    sockaddr_un address;
    const socklen_t size = address_of(number, address);
    const int fd = calls_.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    std::string said = keep(fd);
    said += ' ' + answer(calls_.bind(fd, reinterpret_cast<sockaddr*>(&address), size));
    return said + ' ' + answer(calls_.listen(fd, 1));
  }

  std::string connect(unsigned number) {
    sockaddr_un address;
    const socklen_t size = address_of(number, address);
    const int fd = calls_.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    std::string said = keep(fd);
    said += ' ' + answer(calls_.connect(fd, reinterpret_cast<sockaddr*>(&address), size));
    int error = -1;
    socklen_t room = sizeof(error);
    calls_.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &room);
    return said + ' ' + std::to_string(error);
  }

  std::string accept(int fd) {
    return keep(calls_.accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  const Calls& calls_;
  const std::string place_;
  std::vector<int> fds_;
  std::vector<std::size_t> pipe_ends_;
  unsigned sent_ = 0;
};

void compare(std::uint64_t seed, int steps) {
  std::mt19937_64 draw(seed);
  sim::World world(seed);
  sim::Host& host = world.add_host("host");
  std::string story;
  host.run([&](Loop&) {
    const std::string place = std::to_string(::getpid()) + '-' + std::to_string(seed) + '-';
    Machine real(kReal, place);
    Machine simulated(kSimulated, place);
    for (int i = 0; i < steps; ++i) {
      const auto what = static_cast<unsigned>(draw() % 1000);
      const auto which = static_cast<unsigned>(draw() % 1000);
      const auto number = static_cast<unsigned>(draw() % 1000);
      std::string expected = real.step(what, which, number);
      expected += " |" + real.readiness();
      std::string found = simulated.step(what, which, number);
      found += " |" + simulated.readiness();
      story += expected + " on " + std::to_string(which) + '\n';
      ASSERT_EQ(found, expected) << "seed " << seed << ", step " << i << ", after\n" << story;
    }
  });
}

// Sets each option of a socket, and gets it before and after.
std::string options_of(const Calls& calls, int type) {
  constexpr int kNames[] = {SO_REUSEADDR, SO_KEEPALIVE, SO_BROADCAST, SO_OOBINLINE,
                            SO_DONTROUTE, SO_PASSCRED,  SO_TYPE,      SO_DOMAIN,
                            SO_PROTOCOL,  SO_ERROR,     SO_ACCEPTCONN};
  constexpr int kLevels[] = {SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP};
  const int fd = calls.socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  std::string text;
  for (const int level : kLevels) {
    for (const int name : kNames) {
      for (const int wish : {5, 0}) {
        int value = -1;
        socklen_t size = sizeof(value);
        const int got = calls.getsockopt(fd, level, name, &value, &size);
        text += std::to_string(got == 0 ? value : -errno) + ' ';
        const int set = calls.setsockopt(fd, level, name, &wish, sizeof(wish));
        text += std::to_string(set == 0 ? 0 : -errno) + ' ';
      }
    }
    text += '\n';
  }
  calls.close(fd);
  return text;
}

TEST(CallParity, HoldsForOptionsOfUnixSockets) {
  sim::World world(1);
  sim::Host& host = world.add_host("host");
  host.run([](Loop&) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM})
      EXPECT_EQ(options_of(kSimulated, type), options_of(kReal, type)) << type;
  });
}

// Sends to no address, to one without a size, and to a size without an address.
std::string sent_without_address(const Calls& calls, int fd) {
  std::string text;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  char byte = 'x';
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  for (void* address : {static_cast<void*>(nullptr), static_cast<void*>(&name)}) {
    for (const socklen_t size : {socklen_t{0}, socklen_t{sizeof(name)}}) {
      if (address != nullptr && size != 0) continue;
      msghdr message{};
      message.msg_name = address;
      message.msg_namelen = size;
      message.msg_iov = &bytes;
      message.msg_iovlen = 1;
      const long sent = calls.sendmsg(fd, &message, MSG_NOSIGNAL);
      text += std::to_string(sent < 0 ? -errno : sent) + ' ';
    }
  }
  return text;
}

std::string sent_without_address(const Calls& calls) {
  std::string text;
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    int ends[2] = {-1, -1};
    calls.socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
    text += sent_without_address(calls, ends[0]);
    for (const int fd : ends) calls.close(fd);
    const int alone = calls.socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    text += sent_without_address(calls, alone) + '\n';
    calls.close(alone);
  }
  const int udp = calls.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  text += sent_without_address(calls, udp);
  calls.close(udp);
  return text;
}

TEST(CallParity, HoldsForMessagesWithoutAddress) {
  sim::World world(1);
  sim::Host& host = world.add_host("host");
  host.run([](Loop&) { EXPECT_EQ(sent_without_address(kSimulated), sent_without_address(kReal)); });
}

TEST(CallParity, HoldsForRandomPrograms) {
  const WithoutSigpipe quiet;
  for (std::uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed)
    compare(seed, 60);
}

}  // namespace
}  // namespace spate::testing
