// Random programs choose the same socket as on the kernel, or are refused by both.
#include "sim/net/steering.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "support/own_loopback.h"
#include "support/random.h"

namespace spate::sim {
namespace {

using Steps = std::vector<sock_filter>;

constexpr std::array<std::uint16_t, 21> kCodes = {
    BPF_LD | BPF_W | BPF_ABS,   BPF_LD | BPF_H | BPF_ABS,  BPF_LD | BPF_B | BPF_ABS,
    BPF_LD | BPF_IMM,           BPF_ALU | BPF_ADD | BPF_K, BPF_ALU | BPF_SUB | BPF_K,
    BPF_ALU | BPF_MUL | BPF_K,  BPF_ALU | BPF_DIV | BPF_K, BPF_ALU | BPF_MOD | BPF_K,
    BPF_ALU | BPF_AND | BPF_K,  BPF_ALU | BPF_OR | BPF_K,  BPF_ALU | BPF_XOR | BPF_K,
    BPF_ALU | BPF_LSH | BPF_K,  BPF_ALU | BPF_RSH | BPF_K, BPF_JMP | BPF_JA,
    BPF_JMP | BPF_JEQ | BPF_K,  BPF_JMP | BPF_JGT | BPF_K, BPF_JMP | BPF_JGE | BPF_K,
    BPF_JMP | BPF_JSET | BPF_K, BPF_RET | BPF_K,           BPF_LD | BPF_LEN | 0x700};
constexpr std::size_t kSockets = 4;

// Sockets of the kernel that share a port.
class Group {
 public:
  Group() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(testing::own_loopback());
    for (int& socket : sockets_) {
      socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const int on = 1;
      EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
      socklen_t size = sizeof(address_);
      EXPECT_EQ(::bind(socket, generic(), size), 0);
      EXPECT_EQ(::getsockname(socket, generic(), &size), 0);
    }
  }
  ~Group() {
    for (const int socket : sockets_) ::close(socket);
    ::close(sender_);
  }
  bool attach(Steps& steps) {
    const sock_fprog program{static_cast<std::uint16_t>(steps.size()), steps.data()};
    return ::setsockopt(sockets_[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
                        sizeof(program)) == 0;
  }
  std::uint32_t socket_for(Bytes packet) {
    EXPECT_EQ(::sendto(sender_, packet.data(), packet.size(), 0, generic(), sizeof(address_)),
              static_cast<ssize_t>(packet.size()));
    std::array<pollfd, kSockets> waiting;
    for (std::size_t i = 0; i < kSockets; ++i)
      waiting[i] = {.fd = sockets_[i], .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(waiting.data(), kSockets, -1), 1);
    std::uint32_t chosen = 0;
    while (waiting[chosen].revents == 0) ++chosen;
    char received;
    EXPECT_GE(::recv(waiting[chosen].fd, &received, 1, MSG_TRUNC), 0);
    return chosen;
  }

 private:
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address_); }

  sockaddr_in address_{};
  std::array<int, kSockets> sockets_{};
  int sender_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

sock_filter random_step(testing::Random& random) {
  constexpr std::array<std::uint32_t, 9> kNumbers = {0, 1, 2, 3, 5, 31, 32, 0x80000000, 0xffffffff};
  const auto small = [&random] { return static_cast<std::uint8_t>(random.below(5)); };
  return {.code = kCodes[random.below(kCodes.size())],
          .jt = small(),
          .jf = small(),
          .k = kNumbers[random.below(kNumbers.size())]};
}

// Most results are numbers of a socket.
Steps random_program(testing::Random& random) {
  Steps steps(random.below(9));
  for (sock_filter& step : steps) step = random_step(random);
  if (random.one_in(30)) return steps;
  steps.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSockets - 1));
  steps.push_back(BPF_STMT(BPF_RET | BPF_A, 0));
  return steps;
}

TEST(Steering, ChoosesSocketAsKernelDoes) {
  Group group;
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    testing::Random random(seed);
    Steps steps = random_program(random);
    const auto steering = Steering::make({static_cast<std::uint16_t>(steps.size()), steps.data()});
    ASSERT_EQ(steering != nullptr, group.attach(steps)) << "seed " << seed;
    ++(steering == nullptr ? refused : accepted);
    if (steering == nullptr) continue;
    std::string packet(random.below(9), '\0');
    for (char& letter : packet) letter = static_cast<char>(random.below(256));
    const std::uint32_t chosen = steering->socket_for(bytes_of(packet));
    const std::uint32_t real = group.socket_for(bytes_of(packet));
    ASSERT_TRUE(chosen >= kSockets || chosen == real) << "seed " << seed;
  }
  EXPECT_GT(accepted, 300u);
  EXPECT_GT(refused, 300u);
}

TEST(Steering, RefusesProgramsWithoutSteps) {
  EXPECT_EQ(Steering::make({0, nullptr}), nullptr);
  sock_filter step = BPF_STMT(BPF_RET | BPF_K, 0);
  EXPECT_EQ(Steering::make({0, &step}), nullptr);
  EXPECT_EQ(Steering::make({1, nullptr}), nullptr);
  EXPECT_NE(Steering::make({1, &step}), nullptr);
}

}  // namespace
}  // namespace spate::sim
