// The simulated kernel against the system's: fixed programs of calls on counters, epoll sets and
// control messages, each run in both. Their results are compared as texts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "sim/kernel/kernel.h"
#include "sim/kernels.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

// A program in one kernel. Each call adds its result to the text.
class Script {
 public:
  explicit Script(const Calls& its_calls) : calls(its_calls) {}
  ~Script() {
    for (const int fd : fds_) calls.close(fd);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  const std::string& text() const { return text_; }
  long say(long result) {
    text_ += (result < 0 ? std::string(strerrorname_np(errno)) : std::to_string(result)) + ' ';
    return result;
  }
  void section(std::string_view title) { text_.append("\n").append(title).append(": "); }

  // ---- descriptors
  int keep(int fd) {
    EXPECT_GE(fd, 0) << errno;
    fds_.push_back(fd);
    return fd;
  }
  void close(int fd) {
    std::erase(fds_, fd);
    say(calls.close(fd));
  }
  std::pair<int, int> pipe() {
    int ends[2] = {-1, -1};
    calls.pipe2(ends, O_CLOEXEC | O_NONBLOCK);
    return {keep(ends[0]), keep(ends[1])};
  }
  std::pair<int, int> socket_pair(int type) {
    int ends[2] = {-1, -1};
    calls.socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
    return {keep(ends[0]), keep(ends[1])};
  }
  int counter(unsigned count) { return keep(calls.eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK)); }
  void read(int fd, std::size_t size) { say(calls.read(fd, std::string(size, ' ').data(), size)); }
  void write(int fd, std::size_t size) {
    say(calls.write(fd, std::string(size, 'x').data(), size));
  }
  void poll(int fd) {
    pollfd one{.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
    calls.poll(&one, 1, 0);
    say(one.revents);
  }

  // ---- epoll
  int set() { return keep(calls.epoll_create1(EPOLL_CLOEXEC)); }
  void control(int set, int operation, int fd, std::uint32_t events, std::uint32_t data = 0) {
    epoll_event event{};
    event.events = events;
    event.data.u32 = data;
    say(calls.epoll_ctl(set, operation, fd, &event));
  }
  void wait(int set, int capacity = 8) {
    std::array<epoll_event, 8> events{};
    const int count = calls.epoll_wait(set, events.data(), capacity, 0);
    text_ += '[';
    if (count < 0) say(count);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      text_ += std::to_string(event.data.u32) + ':' + std::to_string(event.events) + ' ';
    }
    text_ += "] ";
  }

  const Calls& calls;

 private:
  std::string text_;
  std::vector<int> fds_;
};

void expect_parity(void (*program)(Script& script)) {
  const WithoutSigpipe quiet;
  const auto played = [program](const Calls& calls) {
    Script script(calls);
    program(script);
    return script.text();
  };
  sim::World world(1);
  sim::Host& host = world.add_host("host");
  host.run([&](Loop&) { EXPECT_EQ(played(kSimulated), played(kReal)); });
}

// ---- descriptors and counters

TEST(ScriptParity, LowestFreeNumberIsOpened) {
  expect_parity([](Script& script) {
    const auto [reader, writer] = script.pipe();
    const int counter = script.counter(0);
    script.say(reader < writer && writer < counter ? 1 : 0);
    script.close(writer);
    script.say(script.counter(0) == writer ? 1 : 0);
    script.say(script.calls.close(1'000'000));
  });
}

void add_count(Script& script, int fd, std::uint64_t number) {
  script.say(script.calls.write(fd, &number, sizeof(number)));
}

void take_count(Script& script, int fd) {
  std::uint64_t number = 0;
  script.say(script.calls.read(fd, &number, sizeof(number)));
  script.say(static_cast<long>(number % 1'000'000));
}

TEST(ScriptParity, CounterAddsUpToItsMaximum) {
  expect_parity([](Script& script) {
    const int fd = script.counter(3);
    script.poll(fd);
    take_count(script, fd);
    take_count(script, fd);
    add_count(script, fd, 2);
    add_count(script, fd, 5);
    script.poll(fd);
    take_count(script, fd);
    script.poll(fd);
    script.section("maximum");
    add_count(script, fd, UINT64_MAX);
    add_count(script, fd, UINT64_MAX - 1);
    script.poll(fd);
    add_count(script, fd, 1);
    take_count(script, fd);
    script.poll(fd);
    script.section("size");
    script.read(fd, 4);
    script.write(fd, 4);
  });
}

TEST(ScriptParity, StatusHasTypeOfFile) {
  expect_parity([](Script& script) {
    const auto type_of = [&script](int fd) {
      struct stat status{};
      if (script.say(script.calls.fstat(fd, &status)) == 0) script.say(status.st_mode & S_IFMT);
    };
    const auto [reader, writer] = script.pipe();
    const auto [first, second] = script.socket_pair(SOCK_STREAM);
    for (const int fd : {reader, writer, first, second, script.counter(0), script.set()})
      type_of(fd);
    script.close(reader);
    type_of(reader);
  });
}

TEST(ScriptParity, SignalOfFileIsThatOfItsDuplicates) {
  expect_parity([](Script& script) {
    const auto [reader, writer] = script.pipe();
    const int copy = script.keep(script.calls.fcntl(reader, F_DUPFD_CLOEXEC, 0));
    script.say(script.calls.fcntl(copy, F_GETSIG));
    script.say(script.calls.fcntl(reader, F_SETSIG, SIGUSR1));
    script.say(script.calls.fcntl(copy, F_GETSIG) == SIGUSR1 ? 1 : 0);
    script.say(script.calls.fcntl(writer, F_GETSIG));
  });
}

// ---- epoll

void play_edges(Script& script, std::uint32_t edge) {
  const int set = script.set();
  const auto [reader, writer] = script.pipe();
  script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN | edge, 1);
  script.wait(set);
  script.write(writer, 10);
  script.wait(set);
  script.wait(set);
  script.write(writer, 10);
  script.wait(set);
  script.read(reader, 3);
  script.wait(set);
  script.section("changed");
  script.control(set, EPOLL_CTL_MOD, reader, EPOLLIN | edge, 2);
  script.wait(set);
  script.wait(set);
  script.section("no interest");
  script.control(set, EPOLL_CTL_MOD, reader, edge, 3);
  script.wait(set);
  script.close(writer);
  script.wait(set);
  script.wait(set);
  script.section("deleted");
  script.control(set, EPOLL_CTL_DEL, reader, 0);
  script.wait(set);
}

TEST(ScriptParity, SetReportsLevels) {
  expect_parity([](Script& script) { play_edges(script, 0); });
}

TEST(ScriptParity, SetReportsEdges) {
  expect_parity([](Script& script) { play_edges(script, EPOLLET); });
}

TEST(ScriptParity, SetReportsOneShotsOnce) {
  expect_parity([](Script& script) {
    play_edges(script, EPOLLONESHOT);
    play_edges(script, EPOLLONESHOT | EPOLLET);
  });
}

TEST(ScriptParity, OneShotDoesNotReportHangUpAfterItsReport) {
  expect_parity([](Script& script) {
    const int set = script.set();
    const auto [reader, writer] = script.pipe();
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN | EPOLLONESHOT);
    script.write(writer, 1);
    script.wait(set);
    script.close(writer);
    script.wait(set);
    script.wait(set);
    script.control(set, EPOLL_CTL_MOD, reader, EPOLLONESHOT);
    script.wait(set);
    script.wait(set);
  });
}

TEST(ScriptParity, DuplicateKeepsClosedNumberInSet) {
  expect_parity([](Script& script) {
    const int set = script.set();
    const auto [reader, writer] = script.pipe();
    const int copy = script.keep(script.calls.fcntl(reader, F_DUPFD_CLOEXEC, 0));
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN, 1);
    script.write(writer, 1);
    script.close(reader);
    script.wait(set);
    script.control(set, EPOLL_CTL_MOD, reader, EPOLLIN, 2);
    script.say(script.keep(script.calls.fcntl(copy, F_DUPFD_CLOEXEC, 0)) == reader ? 1 : 0);
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN, 3);
    script.control(set, EPOLL_CTL_MOD, reader, EPOLLIN, 4);
    script.wait(set);
  });
}

TEST(ScriptParity, WaitWithoutTimeoutReturnsWhatIsReady) {
  expect_parity([](Script& script) {
    const int set = script.set();
    script.control(set, EPOLL_CTL_ADD, script.counter(1), EPOLLIN, 7);
    epoll_event event{};
    script.say(script.calls.epoll_pwait2(set, &event, 1, nullptr, nullptr));
    script.say(event.data.u32);
  });
}

TEST(ScriptParity, BadControlOfSetIsRefused) {
  expect_parity([](Script& script) {
    const int set = script.set();
    const auto [reader, writer] = script.pipe();
    script.control(set, EPOLL_CTL_MOD, reader, EPOLLIN);
    script.control(set, EPOLL_CTL_DEL, reader, EPOLLIN);
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN);
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN);
    script.control(set, EPOLL_CTL_ADD, set, EPOLLIN);
    script.control(reader, EPOLL_CTL_ADD, writer, EPOLLIN);
    script.wait(set, 0);
    script.wait(reader);
    script.close(writer);
    script.control(set, EPOLL_CTL_ADD, writer, EPOLLIN);
  });
}

TEST(ScriptParity, SetReportsReadyDescriptorsInTurn) {
  expect_parity([](Script& script) {
    const int set = script.set();
    for (const std::uint32_t number : {1u, 2u, 3u})
      script.control(set, EPOLL_CTL_ADD, script.counter(1), EPOLLIN, number);
    for (int i = 0; i < 5; ++i) script.wait(set, 1);
    script.wait(set, 2);
    script.wait(set);
  });
}

TEST(ScriptParity, SetKeepsFileOfDuplicatedDescriptor) {
  expect_parity([](Script& script) {
    const int set = script.set();
    const auto [reader, writer] = script.pipe();
    const int duplicate = script.keep(script.calls.fcntl(reader, F_DUPFD_CLOEXEC, 0));
    script.control(set, EPOLL_CTL_ADD, reader, EPOLLIN, 1);
    script.write(writer, 1);
    script.close(reader);
    script.wait(set);
    script.control(set, EPOLL_CTL_DEL, reader, 0);
    script.read(duplicate, 10);
    script.wait(set);
    script.write(writer, 1);
    script.close(duplicate);
    script.wait(set);
    script.write(writer, 1);
  });
}

TEST(ScriptParity, SetMayWatchAnotherSet) {
  expect_parity([](Script& script) {
    const int outer = script.set();
    const int inner = script.set();
    const int counter = script.counter(0);
    script.control(outer, EPOLL_CTL_ADD, inner, EPOLLIN, 1);
    script.control(inner, EPOLL_CTL_ADD, counter, EPOLLIN, 2);
    script.wait(outer);
    add_count(script, counter, 1);
    script.wait(outer);
    script.wait(inner);
    take_count(script, counter);
    script.wait(outer);
  });
}

// ---- control messages

struct ControlRoom {
  explicit ControlRoom(std::size_t size) {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = bytes;
    message.msg_controllen = size;
  }

  char byte = 'x';
  iovec piece{.iov_base = &byte, .iov_len = 1};
  msghdr message{};
  alignas(cmsghdr) char bytes[2048] = {};
};

// Sends `count` descriptors with one byte.
void pass_many(Script& script, int fd, int passed, std::size_t count) {
  ControlRoom room(CMSG_SPACE(count * sizeof(int)));
  cmsghdr* header = CMSG_FIRSTHDR(&room.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(CMSG_DATA(header) + i * sizeof(int), &passed, sizeof(passed));
  script.say(script.calls.sendmsg(fd, &room.message, MSG_NOSIGNAL));
}

// Receives with `size` bytes of room for control messages, and closes the received descriptors.
void receive_passed(Script& script, int fd, std::size_t size) {
  ControlRoom room(size);
  script.say(script.calls.recvmsg(fd, &room.message, MSG_CMSG_CLOEXEC));
  script.say(room.message.msg_flags & MSG_CTRUNC);
  script.say(static_cast<long>(room.message.msg_controllen));
  if (room.message.msg_controllen < sizeof(cmsghdr)) return;
  const cmsghdr* header = CMSG_FIRSTHDR(&room.message);
  script.say(static_cast<long>(header->cmsg_len));
  for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
    int received = -1;
    std::memcpy(&received, room.bytes + at, sizeof(received));
    script.say(script.calls.close(received));
  }
}

TEST(ScriptParity, DescriptorsArePassedWithinLimitAndRoom) {
  expect_parity([](Script& script) {
    const auto [one, other] = script.socket_pair(SOCK_STREAM);
    const int passed = script.counter(0);
    for (std::size_t size = 0; size <= CMSG_SPACE(3 * sizeof(int)); ++size) {
      script.section(std::to_string(size));
      pass_many(script, one, passed, 2);
      receive_passed(script, other, size);
    }
    script.section("limit");
    pass_many(script, one, passed, 254);
    pass_many(script, one, passed, 253);
    receive_passed(script, other, 2048);
  });
}

// Receives a packet, with all that is known of it. A socket of the system waits for the packet.
void receive_described(Script& script, int fd, std::size_t size) {
  while (sim::Kernel::current()->run_due_events()) {
  }
  ControlRoom room(size);
  script.say(script.calls.recvmsg(fd, &room.message, 0));
  script.say(room.message.msg_flags & MSG_CTRUNC);
  script.say(static_cast<long>(room.message.msg_controllen));
  for (cmsghdr* header = CMSG_FIRSTHDR(&room.message); header != nullptr;
       header = CMSG_NXTHDR(&room.message, header)) {
    script.say(header->cmsg_type);
    script.say(static_cast<long>(header->cmsg_len));
  }
}

TEST(ScriptParity, DescriptionOfPacketIsTruncatedToItsRoom) {
  expect_parity([](Script& script) {
    const int fd = script.keep(script.calls.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(own);
    script.say(script.calls.bind(fd, reinterpret_cast<sockaddr*>(&own), length));
    script.calls.getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length);
    script.say(script.calls.connect(fd, reinterpret_cast<sockaddr*>(&own), length));
    const int on = 1;
    script.say(script.calls.setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)));
    script.say(script.calls.setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)));
    for (std::size_t size = 0; size <= 80; ++size) {
      script.section(std::to_string(size));
      script.write(fd, 1);
      receive_described(script, fd, size);
    }
  });
}

}  // namespace
}  // namespace spate::testing
