// The memory of a host, which Unix sockets and pipes share with TCP and UDP (limits_test.cc).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <string>

#include "sim/kernels.h"
#include "spate/net/stream.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

class SimMemory : public ::testing::Test {
 protected:
  struct Ends {
    int one;
    int other;
  };
  Ends pair(int type) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(calls_.socketpair(AF_UNIX, type, 0, fds), 0);
    return {fds[0], fds[1]};
  }
  Ends pipe() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(calls_.pipe2(fds, O_CLOEXEC), 0);
    return {fds[1], fds[0]};
  }
  long write(int fd, std::size_t size) {
    const long result = calls_.write(fd, std::string(size, 'x').data(), size);
    return result < 0 ? -errno : result;
  }
  long read(int fd, std::size_t size) {
    std::string room(size, '\0');
    return calls_.read(fd, room.data(), size);
  }
  bool is_writable(int fd) {
    pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
    calls_.poll(&one, 1, 0);
    return one.revents == POLLOUT;
  }
  void close(const Ends& ends) {
    calls_.close(ends.one);
    calls_.close(ends.other);
  }

  const Calls& calls_ = kSimulated;
  World world_{1};
  Host& host_ = world_.add_host("host");
};

TEST_F(SimMemory, UnixStreamAcceptsAsMuchAsFits) {
  host_.limit_memory(10'000);
  host_.run([&](Loop&) {
    const Ends ends = pair(SOCK_STREAM);
    EXPECT_EQ(write(ends.one, 30'000), 10'000);
    EXPECT_EQ(host_.used_memory(), 10'000u);
    EXPECT_EQ(write(ends.one, 1), -EAGAIN);
    EXPECT_FALSE(is_writable(ends.one));
    EXPECT_EQ(read(ends.other, 4'000), 4'000);
    EXPECT_TRUE(is_writable(ends.one));
    EXPECT_EQ(write(ends.one, 30'000), 4'000);
    close(ends);
  });
  EXPECT_EQ(host_.used_memory(), 0u);
}

TEST_F(SimMemory, PipeAcceptsPageOrNothing) {
  host_.limit_memory(10'000);
  host_.run([&](Loop&) {
    const Ends ends = pipe();
    EXPECT_EQ(write(ends.one, 7'000), 7'000);
    EXPECT_FALSE(is_writable(ends.one));
    EXPECT_EQ(write(ends.one, 3'001), -EAGAIN);
    EXPECT_EQ(write(ends.one, 3'000), 3'000);
    EXPECT_EQ(read(ends.other, 4'096), 4'096);
    EXPECT_TRUE(is_writable(ends.one));
    EXPECT_EQ(write(ends.one, 30'000), 4'096);
    close(ends);
  });
  EXPECT_EQ(host_.used_memory(), 0u);
}

TEST_F(SimMemory, UnixPacketFitsOrIsRefused) {
  host_.limit_memory(10'000);
  host_.run([&](Loop&) {
    const Ends ends = pair(SOCK_DGRAM);
    EXPECT_EQ(write(ends.one, 6'000), 6'000);
    EXPECT_EQ(write(ends.one, 6'000), -ENOBUFS);
    EXPECT_EQ(read(ends.other, 10'000), 6'000);
    EXPECT_EQ(write(ends.one, 6'000), 6'000);
    EXPECT_EQ(host_.used_memory(), 6'000u);
    close(ends);
  });
  EXPECT_EQ(host_.used_memory(), 0u);
}

TEST_F(SimMemory, NothingIsOpenedWithoutMemory) {
  host_.limit_memory(1'000);
  host_.run([&](Loop&) {
    const Ends ends = pair(SOCK_STREAM);
    EXPECT_EQ(write(ends.one, 1'000), 1'000);
    int fds[2] = {-1, -1};
    EXPECT_EQ(calls_.socketpair(AF_UNIX, SOCK_STREAM, 0, fds), -1);
    EXPECT_EQ(errno, ENOBUFS);
    EXPECT_EQ(calls_.socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), -1);
    EXPECT_EQ(errno, ENOBUFS);
    EXPECT_EQ(calls_.socket(AF_UNIX, SOCK_STREAM, 0), -1);
    EXPECT_EQ(errno, ENOBUFS);
    EXPECT_EQ(calls_.pipe2(fds, O_CLOEXEC), -1);
    EXPECT_EQ(errno, ENFILE);
    close(ends);
    close(pipe());
  });
}

// A loop that waits for writability is woken when any socket frees memory.
TEST_F(SimMemory, WaitersContinueWhenMemoryIsFreed) {
  host_.limit_memory(9'000);
  auto [from, to] = host_.run([](Loop& loop) { return must(Stream::socket_pair(loop)); });
  std::size_t received = 0;
  bool has_ended = false;
  Ends hoard{-1, -1};
  host_.run([&](Loop&) {
    hoard = pipe();
    EXPECT_EQ(write(hoard.one, 9'000), 9'000);
    to.start({.on_data =
                  [&](Bytes bytes) {
                    received += bytes.size();
                    return bytes.size();
                  },
              .on_end = [&] { has_ended = true; }});
    from.start({});
    from.write(std::string(300'000, 'x'));
    from.end();
  });
  world_.run_for(1s);
  EXPECT_EQ(received, 0u);
  host_.run([&](Loop&) { EXPECT_EQ(read(hoard.other, 5'000), 5'000); });
  EXPECT_EQ(world_.run_until([&] { return has_ended; }, 1s), Outcome::done);
  EXPECT_EQ(received, 300'000u);
  host_.run([&](Loop&) { close(hoard); });
  EXPECT_EQ(host_.used_memory(), 0u);
}

TEST_F(SimMemory, CrashReleasesMemory) {
  host_.boot([&](Loop& loop) {
    auto ends = must(Stream::socket_pair(loop));
    ends.first.start({});
    ends.first.write(std::string(10'000, 'x'));
    return ends;
  });
  EXPECT_EQ(host_.used_memory(), 10'000u);
  host_.crash();
  EXPECT_EQ(host_.used_memory(), 0u);
}

}  // namespace
}  // namespace spate::testing
