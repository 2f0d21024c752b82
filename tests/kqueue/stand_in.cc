// The stand-in for kqueue: it behaves as the kernels of the BSDs do where the backend depends on
// it.
#include <poll.h>
#include <sys/event.h>

#include <vector>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class KqueueStandIn : public ::testing::Test {
 protected:
  using Events = std::vector<struct kevent>;

  // Returns 0, or the errno with which the change was refused.
  int change(int fd, std::int16_t filter, int flags, std::uint32_t fflags = 0,
             std::int64_t data = 0, std::uintptr_t udata = 0) {
    struct kevent one{.ident = static_cast<std::uintptr_t>(fd),
                      .filter = filter,
                      .flags = static_cast<std::uint16_t>(flags | EV_RECEIPT),
                      .fflags = fflags,
                      .data = data,
                      .udata = reinterpret_cast<void*>(udata)};
    EXPECT_EQ(::kevent(queue_.get(), &one, 1, &one, 1, nullptr), 1) << "EV_RECEIPT waits";
    EXPECT_EQ(one.flags, EV_ERROR);
    return static_cast<int>(one.data);
  }
  int add(int fd, std::int16_t filter) { return change(fd, filter, EV_ADD); }

  Events look() {
    Events events(8);
    const timespec at_once{};
    const int count = ::kevent(queue_.get(), nullptr, 0, events.data(),
                               static_cast<int>(events.size()), &at_once);
    EXPECT_GE(count, 0);
    events.resize(static_cast<std::size_t>(std::max(count, 0)));
    return events;
  }
  // Returns the only event, or one without a filter.
  struct kevent look_at_one() {
    const Events events = look();
    EXPECT_EQ(events.size(), 1u);
    constexpr struct kevent kNone{};
    return events.empty() ? kNone : events[0];
  }

  Fd queue_{::kqueue()};
};

TEST_F(KqueueStandIn, EachDirectionIsOneEvent) {
  Sockets pair;
  EXPECT_EQ(add(pair.near(), EVFILT_READ), 0);
  EXPECT_EQ(add(pair.near(), EVFILT_WRITE), 0);
  EXPECT_EQ(look_at_one().filter, EVFILT_WRITE);
  ASSERT_EQ(::write(pair.far(), "xy", 2), 2);
  const Events events = look();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NE(events[0].filter, events[1].filter);
  EXPECT_EQ(look().size(), 2u) << "it is level-triggered";
}

TEST_F(KqueueStandIn, AddingAgainReplacesUdata) {
  Pipe pipe;
  EXPECT_EQ(change(pipe.out(), EVFILT_WRITE, EV_ADD, 0, 0, 1), 0);
  EXPECT_EQ(change(pipe.out(), EVFILT_WRITE, EV_ADD, 0, 0, 2), 0);
  EXPECT_EQ(look_at_one().udata, reinterpret_cast<void*>(2));
}

TEST_F(KqueueStandIn, MissingKnoteAndClosedNumberAreRefused) {
  Pipe pipe;
  EXPECT_EQ(change(pipe.in(), EVFILT_READ, EV_DELETE), ENOENT);
  EXPECT_EQ(add(pipe.in(), EVFILT_READ), 0);
  EXPECT_EQ(change(pipe.in(), EVFILT_READ, EV_DELETE), 0);
  EXPECT_EQ(change(pipe.in(), EVFILT_READ, EV_DELETE), ENOENT);
  const int number = pipe.in();
  pipe.read_end.reset();
  EXPECT_EQ(add(number, EVFILT_READ), EBADF);
}

TEST_F(KqueueStandIn, DisabledKnoteIsNotReported) {
  Pipe pipe;
  EXPECT_EQ(change(pipe.out(), EVFILT_WRITE, EV_ADD | EV_DISABLE), 0);
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(change(pipe.out(), EVFILT_WRITE, EV_ENABLE), 0);
  EXPECT_EQ(look().size(), 1u);
}

TEST_F(KqueueStandIn, UnknownFlagIsRefused) {
  Pipe pipe;
  EXPECT_EQ(change(pipe.in(), EVFILT_READ, EV_ADD | 0x0020), EINVAL);
}

TEST_F(KqueueStandIn, ErrorWithoutRoomIsReturned) {
  struct kevent one{.ident = static_cast<std::uintptr_t>(queue_.get()),
                    .filter = EVFILT_READ,
                    .flags = EV_DELETE,
                    .fflags = 0,
                    .data = 0,
                    .udata = nullptr};
  EXPECT_EQ(::kevent(queue_.get(), &one, 1, nullptr, 0, nullptr), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(KqueueStandIn, WaitWithoutRoomReturnsAtOnce) {
  EXPECT_EQ(::kevent(queue_.get(), nullptr, 0, nullptr, 0, nullptr), 0);
}

TEST_F(KqueueStandIn, ClosedNumberLosesItsKnotesThoughDuplicateIsOpen) {
  Pipe pipe;
  const Fd duplicate(::dup(pipe.in()));
  EXPECT_EQ(add(pipe.in(), EVFILT_READ), 0);
  const int number = pipe.in();
  pipe.read_end.reset();
  pipe.fill();
  EXPECT_TRUE(look().empty());
  pollfd entry{.fd = queue_.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
  Pipe other;
  ASSERT_EQ(::dup2(other.in(), number), number);
  EXPECT_EQ(change(number, EVFILT_READ, EV_DELETE), ENOENT);
  EXPECT_EQ(add(number, EVFILT_READ), 0);
  EXPECT_TRUE(look().empty()) << "the event is the other file's";
  other.fill();
  EXPECT_EQ(look_at_one().ident, static_cast<std::uintptr_t>(number));
  ::close(number);
}

TEST_F(KqueueStandIn, NumberIsWatchedAgainAfterDuplicateWasClosed) {
  Pipe pipe;
  const Fd kept(::dup(pipe.in()));
  const int number = pipe.in();
  pipe.fill();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(add(number, EVFILT_READ), 0);
    EXPECT_EQ(look_at_one().ident, static_cast<std::uintptr_t>(number));
    ::close(number);
    EXPECT_TRUE(look().empty());
    ASSERT_EQ(::dup2(kept.get(), number), number);
  }
}

TEST_F(KqueueStandIn, EndIsReportedWithUnreadData) {
  Sockets pair;
  EXPECT_EQ(add(pair.near(), EVFILT_READ), 0);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  ASSERT_EQ(::shutdown(pair.far(), SHUT_WR), 0);
  const struct kevent end = look_at_one();
  EXPECT_EQ(end.flags, EV_EOF);
  EXPECT_EQ(end.fflags, 0u);
}

TEST_F(KqueueStandIn, ResetHasErrorAndLeavesItToProgram) {
  Sockets pair{true};
  EXPECT_EQ(add(pair.near(), EVFILT_WRITE), 0);
  const linger abortive{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(pair.far(), SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive)), 0);
  pair.far_end.reset();
  const struct kevent end = look_at_one();
  EXPECT_EQ(end.flags, EV_EOF);
  EXPECT_NE(end.fflags, 0u);
  char byte;
  EXPECT_EQ(::read(pair.near(), &byte, 1), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(KqueueStandIn, OwnShutdownEndsOutput) {
  for (const bool tcp : {false, true}) {
    Sockets pair{tcp};
    EXPECT_EQ(add(pair.near(), EVFILT_WRITE), 0);
    EXPECT_EQ(look_at_one().flags, 0);
    ASSERT_EQ(::shutdown(pair.near(), SHUT_WR), 0);
    const struct kevent end = look_at_one();
    EXPECT_EQ(end.flags, EV_EOF);
    EXPECT_EQ(end.fflags, 0u);
  }
}

TEST_F(KqueueStandIn, LowWaterMarkReportsEndOnly) {
  Sockets pair;
  EXPECT_EQ(change(pair.near(), EVFILT_READ, EV_ADD, NOTE_LOWAT, 1'000'000), 0);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  EXPECT_TRUE(look().empty());
  pair.far_end.reset();
  EXPECT_EQ(look_at_one().flags, EV_EOF);
}

TEST_F(KqueueStandIn, OutOfBandDataIsException) {
  Sockets pair{true};
  EXPECT_EQ(change(pair.near(), EVFILT_EXCEPT, EV_ADD, NOTE_OOB), 0);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  EXPECT_TRUE(look().empty());
  ASSERT_EQ(::send(pair.far(), "!", 1, MSG_OOB), 1);
  EXPECT_EQ(look_at_one().filter, EVFILT_EXCEPT);
}

TEST_F(KqueueStandIn, PipeWithoutReaderIsRefusedForWritingButItsKnoteRemains) {
  Pipe pipe;
  EXPECT_EQ(add(pipe.out(), EVFILT_WRITE), 0);
  pipe.read_end.reset();
  EXPECT_EQ(look_at_one().flags, EV_EOF);
  EXPECT_EQ(change(pipe.out(), EVFILT_WRITE, EV_DELETE), 0);
  EXPECT_EQ(add(pipe.out(), EVFILT_WRITE), EPIPE);
}

TEST_F(KqueueStandIn, FilesAndDevicesAreRefusedForWriting) {
  const TempDir dir;
  dir.append("file");
  const Fd file(::open(dir.file("file").c_str(), O_RDWR | O_CLOEXEC));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(add(file.get(), EVFILT_READ), 0);
  EXPECT_EQ(add(file.get(), EVFILT_WRITE), EINVAL);
  EXPECT_EQ(add(null.get(), EVFILT_WRITE), EINVAL);
}

TEST_F(KqueueStandIn, QueueIsReadableWhenItHasEvents) {
  Pipe pipe;
  EXPECT_EQ(add(pipe.in(), EVFILT_READ), 0);
  pollfd entry{.fd = queue_.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
  pipe.fill();
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
  EXPECT_EQ(look().size(), 1u);
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
  pipe.drain();
  look();
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

TEST_F(KqueueStandIn, EventsBeyondRoomAreReportedNext) {
  std::vector<Pipe> pipes(5);
  for (const Pipe& pipe : pipes) EXPECT_EQ(add(pipe.out(), EVFILT_WRITE), 0);
  std::vector<bool> seen(64);
  for (int turn = 0; turn < 5; ++turn) {
    struct kevent one{};
    const timespec at_once{};
    ASSERT_EQ(::kevent(queue_.get(), nullptr, 0, &one, 1, &at_once), 1);
    if (one.ident < seen.size()) seen[one.ident] = true;
  }
  for (const Pipe& pipe : pipes) EXPECT_TRUE(seen[static_cast<std::size_t>(pipe.out())]);
}

TEST_F(KqueueStandIn, ChildDoesNotInheritQueue) {
  Pipe pipe;
  EXPECT_EQ(add(pipe.out(), EVFILT_WRITE), 0);
  const int pid = fork_child([&] {
    struct kevent one{};
    if (::kevent(queue_.get(), nullptr, 0, &one, 1, nullptr) != -1 || errno != EBADF) return 1;
    return ::fcntl(queue_.get(), F_GETFD) >= 0 ? 2 : 0;
  });
  EXPECT_EQ(wait_for(pid), 0);
  EXPECT_EQ(look().size(), 1u);
}

}  // namespace
}  // namespace spate::testing
