// Datagram: calls that it rejects, calls that the kernel rejects, and calls after its end.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/fault.h"
#include "spate/error.h"
#include "streams/datagram_harness.h"
#include "support/missing.h"
#include "sys/descriptor.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

class DatagramLimitsTest : public DatagramTest {
 protected:
  DatagramLimitsTest() : DatagramTest("epoll") {}
  // Makes the next `times` packets fail.
  template <class Function>
  static auto with_fault(SystemCall call, int error, Function function, std::uint64_t times = 1) {
    FaultPlan plan;
    plan.fail_nth(call, 1, error, times);
    const FaultScope scope(plan);
    return function();
  }
};

TEST_F(DatagramLimitsTest, EmptySocketIsSafe) {
  Datagram moved_from = open();
  const Datagram taken = std::move(moved_from);
  Datagram never;
  const Address to = Address::loopback_ipv4(1);
  for (Datagram* empty : {&never, &moved_from}) {
    const Outgoing packet{.bytes = bytes_of("x"), .peer = &to};
    std::error_code error;
    empty->pause();
    empty->resume();
    EXPECT_EQ(empty->send(bytes_of("x"), to), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->send(bytes_of("x")), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->send({&packet, 1}, &error), 0u);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->send({&packet, 1}), 0u);
    EXPECT_EQ(empty->send_segments(bytes_of("x"), 1, to).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->connect(to), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->connect(Address()), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->join(*Address::ip("239.1.1.1", 0)), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->leave(*Address::ip("ff02::1", 0)), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_multicast_interface(1), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_multicast_loop(true), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_multicast_hops(1), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_hops(1), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_ecn(Ecn::capable_0), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->set_kernel_buffers(1000, 1000), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->path_mtu().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->dropped().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(empty->local_address(), Address());
    EXPECT_EQ(empty->fd(), -1);
  }
}

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
TEST_F(DatagramLimitsTest, StartOfEmptySocketTraps) {
  EXPECT_DEATH(Datagram().start(log_), "an empty Datagram");
}
#endif

TEST_F(DatagramLimitsTest, ClosesOldSocketOnMoveAssignment) {
  Datagram kept = open();
  Datagram other = open();
  const Address first = kept.local_address();
  const Address second = other.local_address();
  kept.start(log_);
  kept = std::move(other);
  EXPECT_EQ(other.fd(), -1);
  EXPECT_EQ(kept.local_address(), second);
  EXPECT_TRUE(Datagram::create(loop_, first));
  Datagram& self = kept;
  kept = std::move(self);
  EXPECT_EQ(kept.local_address(), second);
}

TEST_F(DatagramLimitsTest, RejectsInvalidArgumentsOnOpen) {
  const int before = static_cast<int>(open_fds().size());
  Datagram adopted = open();
  const int fd = ::fcntl(adopted.fd(), F_DUPFD_CLOEXEC, 0);
  for (const std::size_t size : {std::size_t{0}, std::size_t{65537}, SIZE_MAX}) {
    const DatagramOptions options{.packet_size = size};
    EXPECT_EQ(Datagram::create(loop_, Address::loopback_ipv4(0), options).error(),
              std::errc::invalid_argument);
    EXPECT_EQ(Datagram::adopt(loop_, fd, options).error(), std::errc::invalid_argument);
  }
  EXPECT_EQ(Datagram::create(loop_, Address()).error(), std::errc::invalid_argument);
  EXPECT_EQ(Datagram::adopt(loop_, -1).error(), std::errc::bad_file_descriptor);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  EXPECT_EQ(Datagram::adopt(loop_, pair[0]).error(), std::errc::invalid_argument);
  const sys::Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(Datagram::adopt(loop_, file.get()).error(), std::errc::not_a_socket);
  for (const int open : {fd, pair[0], pair[1]}) EXPECT_EQ(::close(open), 0);  // Still ours.
  EXPECT_EQ(open_fds().size(), static_cast<std::size_t>(before) + 2);
}

TEST_F(DatagramLimitsTest, ReportsInvalidPeer) {
  Datagram four = open();
  Datagram six = open_dual();
  Datagram local = open_at(own_name("l"));
  const Address v4 = four.local_address();
  const Address v6 = *Address::ip("::1", six.local_address().port());
  const Address name = local.local_address();
  six.connect(v6);  // The kernel takes an unspecified address for the connected peer.
  const auto expect = [](Datagram& from, const Address& to, std::error_code wanted) {
    const Outgoing packet{.bytes = bytes_of("x"), .peer = &to};
    std::error_code error;
    EXPECT_EQ(from.send(bytes_of("x"), to), wanted) << to.to_string();
    EXPECT_EQ(from.send({&packet, 1}, &error), wanted ? 0u : 1u);
    EXPECT_EQ(error, wanted);
    const auto sent = from.send_segments(bytes_of("xyz"), 1, to);
    EXPECT_EQ(sent ? std::error_code() : sent.error(), wanted);
  };
  const std::error_code none(EINVAL, std::system_category());
  const std::error_code wrong(EAFNOSUPPORT, std::system_category());
  for (Datagram* any : {&four, &six, &local}) expect(*any, Address(), none);
  expect(four, v6, wrong);
  expect(four, name, wrong);
  expect(six, name, wrong);
  expect(local, v4, wrong);
  expect(local, v6, wrong);
  EXPECT_FALSE(six.connect(Address()));
  expect(four, v4, {});
  expect(six, v4, {});
  expect(local, name, {});
  EXPECT_EQ(four.send(bytes_of("to nobody")), std::errc::destination_address_required);
  EXPECT_EQ(four.connect(v6), std::errc::address_family_not_supported);
}

TEST_F(DatagramLimitsTest, SendsBatchUpToInvalidPeer) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  const Address nobody;
  std::vector<Outgoing> packets(70, {.bytes = bytes_of("x"), .peer = &to});
  for (const std::size_t at : {0u, 3u, 64u, 69u}) {
    packets[at].peer = &nobody;
    std::error_code error;
    EXPECT_EQ(sender.send(packets, &error), at);
    EXPECT_EQ(error, std::errc::invalid_argument);
    packets[at].peer = &to;
  }
  std::error_code error(EIO, std::system_category());
  EXPECT_EQ(sender.send(packets, &error), 70u);
  EXPECT_FALSE(error);
  run_until(loop_, [&] { return log_.texts.size() == 3 + 64 + 69 + 70; });
}

TEST_F(DatagramLimitsTest, AcceptsEmptyBatchesAndRejectsInvalidSizes) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  std::error_code error(EIO, std::system_category());
  EXPECT_EQ(sender.send(std::span<const Outgoing>(), &error), 0u);
  EXPECT_FALSE(error);
  EXPECT_EQ(sender.send_segments({}, 100, to).value_or(1), 0u);
  for (const std::size_t segment : {std::size_t{0}, std::size_t{65508}, SIZE_MAX})
    EXPECT_EQ(sender.send_segments(bytes_of("x"), segment, to).error(),
              std::errc::invalid_argument);
  const std::string much(65508, 'x');
  EXPECT_EQ(sender.send(bytes_of(much), to), std::errc::message_size);
  const Outgoing packets[] = {{.bytes = bytes_of("fits"), .peer = &to},
                              {.bytes = bytes_of(much), .peer = &to}};
  EXPECT_EQ(sender.send(packets, &error), 1u);
  EXPECT_EQ(error, std::errc::message_size);
  EXPECT_EQ(sender.send_segments(bytes_of("short"), 65507, to).value_or(0), 5u);
  run_until(loop_, [&] { return log_.texts.size() == 2; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"fits", "short"}));
}

TEST_F(DatagramLimitsTest, RejectsInvalidSourcesMarksAndSegments) {
  Datagram four = open();
  Datagram dual = open_dual();
  Datagram unix_socket = open_at(own_name("u"));
  const Address peer = open().local_address();
  const Address path = unix_socket.local_address();
  const Address own_v4 = Address::loopback_ipv4(0);
  const Address own_v6 = Address::loopback_ipv6(0);
  const Address foreign = *Address::ip("192.0.2.1", 0);
  const Address none;
  const std::string long_text(65, 'x');
  struct {
    Datagram& socket;
    Outgoing packet;
    std::errc error;
  } const cases[] = {
      {four, {.peer = &peer, .local = &own_v6}, std::errc::invalid_argument},
      {dual, {.peer = &peer, .local = &own_v6}, std::errc::invalid_argument},
      {dual, {.peer = &own_v6, .local = &own_v4}, std::errc::invalid_argument},
      {four, {.peer = &peer, .local = &none}, std::errc::invalid_argument},
      {four, {.local = &own_v6}, std::errc::address_family_not_supported},
      {four, {.peer = &peer, .ecn = static_cast<Ecn>(4)}, std::errc::invalid_argument},
      {four,
       {.bytes = bytes_of(long_text), .peer = &peer, .segment = 1},
       std::errc::invalid_argument},
      {unix_socket, {.peer = &path, .local = &path}, std::errc::operation_not_supported},
      {unix_socket, {.peer = &path, .ecn = Ecn::congested}, std::errc::operation_not_supported}};
  for (const auto& [socket, packet, expected] : cases) {
    std::error_code error;
    EXPECT_EQ(socket.send({&packet, 1}, &error), 0u);
    EXPECT_EQ(error, expected) << error.message();
  }
  for (Datagram* socket : {&four, &dual}) {
    const Outgoing packet{.peer = &peer, .local = &foreign};
    std::error_code error;
    EXPECT_EQ(socket->send({&packet, 1}, &error), 0u);
    EXPECT_TRUE(error == std::errc::invalid_argument || error == std::errc::network_unreachable)
        << error.message();
  }
}

TEST_F(DatagramLimitsTest, RejectsOptionsOutOfRange) {
  Datagram four = open();
  Datagram six = open_dual();
  Datagram local = open_at(own_name("l"));
  for (Datagram* socket : {&four, &six}) {
    for (const int hops : {-1, 0, 256})
      EXPECT_EQ(socket->set_hops(hops), std::errc::invalid_argument);
    for (const int hops : {-1, 256})
      EXPECT_EQ(socket->set_multicast_hops(hops), std::errc::invalid_argument);
    EXPECT_FALSE(socket->set_hops(255));
    EXPECT_FALSE(socket->set_multicast_hops(255));
    EXPECT_EQ(socket->set_ecn(static_cast<Ecn>(4)), std::errc::invalid_argument);
    EXPECT_TRUE(socket->set_multicast_interface(UINT32_MAX));
  }
  EXPECT_EQ(four.join(Address()), std::errc::invalid_argument);
  EXPECT_EQ(four.join(own_name("x")), std::errc::invalid_argument);
  EXPECT_EQ(four.join(*Address::ip("ff02::1", 0)), std::errc::no_protocol_option);
  EXPECT_EQ(six.join(Address::loopback_ipv6(0)), std::errc::invalid_argument);
  EXPECT_EQ(local.join(*Address::ip("239.1.1.1", 0)), std::errc::operation_not_supported);
  EXPECT_EQ(local.set_hops(1), std::errc::operation_not_supported);
}

TEST_F(DatagramLimitsTest, ClampsKernelBuffersToMaximum) {
  Datagram socket = open();
  const auto room = [&] {
    int value = 0;
    socklen_t size = sizeof(value);
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &value, &size);
    return value;
  };
  EXPECT_FALSE(socket.set_kernel_buffers(std::size_t{1} << 30, 0));
  const int max = room();
  for (const std::size_t size : {(std::size_t{1} << 32) + 1, std::size_t{1} << 31, SIZE_MAX}) {
    EXPECT_FALSE(socket.set_kernel_buffers(size, size));
    EXPECT_EQ(room(), max);
  }
}

// ---- errors of the kernel

TEST_F(DatagramLimitsTest, CallsOnWritableAfterEachRefusedSend) {
  Datagram receiver = open();
  Datagram sender = open();
  sender.start(log_);
  const Address to = receiver.local_address();
  const Outgoing packet{.bytes = bytes_of("x"), .peer = &to};
  const std::function<bool()> ways[] = {
      [&] { return bool(sender.send(bytes_of("x"), to)); },
      [&] { return sender.send({&packet, 1}) == 0; },
      [&] { return !sender.send_segments(bytes_of("xyz"), 1, to); },
      [&] { return !sender.send_segments(bytes_of("x"), 1, to); },
  };
  int refused = 0;
  for (const int error : {EAGAIN, ENOBUFS}) {
    for (const auto& send : ways) {
      EXPECT_TRUE(with_fault(SystemCall::send, error, send));
      ++refused;
      run_until(loop_, [&] { return log_.writable == refused; });
      run_turns(loop_, 3);
      EXPECT_EQ(log_.writable, refused);
    }
  }
  EXPECT_TRUE(with_fault(SystemCall::send, EHOSTUNREACH, ways[0]));
  run_turns(loop_, 3);
  EXPECT_EQ(log_.writable, refused);
}

// Only a socket whose writability was reported wrongly waits for a timer.
TEST_F(DatagramLimitsTest, WaitsForWritabilityAgainAfterSuccessfulSend) {
  Datagram receiver = open();
  Datagram sender = open();
  sender.start(log_);
  const Address to = receiver.local_address();
  const Outgoing packet{.bytes = bytes_of("x"), .peer = &to};
  const std::function<bool()> ways[] = {
      [&] { return !sender.send(bytes_of("x"), to); },
      [&] { return sender.send({&packet, 1}) == 1; },
      [&] { return sender.send_segments(bytes_of("xyz"), 1, to).has_value(); },
  };
  int refused = 0;
  for (const auto& send : ways) {
    EXPECT_FALSE(with_fault(SystemCall::send, EAGAIN, send));
    run_turns(loop_, 3);
    EXPECT_EQ(log_.writable, ++refused);
    EXPECT_TRUE(send());
  }
}

// The kernel reports such a socket as always writable.
TEST_F(DatagramLimitsTest, DoesNotSpinWhilePeerDoesNotRead) {
  Datagram receiver = open_at(own_name("r"));
  Datagram sender = open_at(own_name("s"));
  const Address to = receiver.local_address();
  bool is_waiting = true;
  int sent = 0;
  Collector writer;
  writer.when_writable = [&] {
    while (is_waiting && !sender.send(bytes_of("x"), to)) ++sent;
  };
  sender.start(writer);
  while (!sender.send(bytes_of("x"), to)) ++sent;
  const int room = sent;
  const std::uint64_t before = loop_.iteration();
  bool over = false;
  Timer end(loop_, [&] { over = true; });
  ASSERT_TRUE(end.start(std::chrono::milliseconds(100)));
  while (!over) loop_.run(Run::once);
  EXPECT_LT(loop_.iteration() - before, 250u);
  EXPECT_GT(writer.writable, 1);
  EXPECT_EQ(sent, room);
  receiver.start(log_);
  run_until(loop_, [&] { return sent >= 3 * room; });
  is_waiting = false;
  run_until(loop_, [&] { return log_.texts.size() == static_cast<std::size_t>(sent); });
}

TEST_F(DatagramLimitsTest, RetriesInterruptedSends) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  const Outgoing packet{.bytes = bytes_of("b"), .peer = &to};
  EXPECT_FALSE(with_fault(SystemCall::send, EINTR, [&] { return sender.send(bytes_of("a"), to); }));
  EXPECT_EQ(with_fault(SystemCall::send, EINTR, [&] { return sender.send({&packet, 1}); }), 1u);
  const auto segments = with_fault(SystemCall::send, EINTR,
                                   [&] { return sender.send_segments(bytes_of("cd"), 1, to); });
  EXPECT_EQ(segments.value_or(0), 2u);
  run_until(loop_, [&] { return log_.texts.size() == 4; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"a", "b", "c", "d"}));
}

// A packet too large for joining must not turn joining off for good.
TEST_F(DatagramLimitsTest, SegmentsInKernelAgainAfterRefusal) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  std::size_t expected = 0;
  for (const int error : {EMSGSIZE, EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT}) {
    const auto send = [&] { return sender.send_segments(bytes_of("aabbc"), 2, to).value_or(0); };
    ASSERT_EQ(with_fault(SystemCall::send, error, send), 5u);
    FaultPlan counting;
    const FaultScope scope(counting);
    EXPECT_EQ(send(), 5u);
    ASSERT_EQ(counting.calls(SystemCall::send), 1u);
    expected += 6;
    run_until(loop_, [&] { return log_.texts.size() == expected; });
  }
  for (std::size_t i = 0; i < expected; ++i)
    EXPECT_EQ(log_.texts[i], i % 3 == 0 ? "aa" : i % 3 == 1 ? "bb" : "c");
}

TEST_F(DatagramLimitsTest, ReportsNumberOfBytesSentInSegments) {
  Datagram receiver = open();
  Datagram sender = open();
  const Address to = receiver.local_address();
  const std::string bytes(200 * 10, 'x');  // Four messages of up to 64 packets.
  FaultPlan plan;
  plan.fail_nth(SystemCall::send, 3, EAGAIN);
  const FaultScope scope(plan);
  EXPECT_EQ(sender.send_segments(bytes_of(bytes), 10, to).value_or(0), 2u * 64 * 10);
}

TEST_F(DatagramLimitsTest, ContinuesAfterReceiveError) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  sender.send(bytes_of("x"), receiver.local_address());
  with_fault(SystemCall::receive, ENOMEM,
             [&] { run_until(loop_, [&] { return log_.errors == 1; }); });
  EXPECT_EQ(log_.error, std::errc::not_enough_memory);
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  for (const int harmless : {EAGAIN, EINTR}) {
    sender.send(bytes_of("x"), receiver.local_address());
    with_fault(SystemCall::receive, harmless, [&] { run_turns(loop_, 2); });
  }
  run_until(loop_, [&] { return log_.texts.size() == 3; });
  EXPECT_EQ(log_.errors, 1);
}

TEST_F(DatagramLimitsTest, ReportsRefusedRegistrationOnceAndWaits) {
  LoopOptions options;
  options.backend = "select";
  std::unique_ptr<Loop> loop = *Loop::create(options);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit max{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &max), 0);
  const int fd = ::fcntl(open().fd(), F_DUPFD_CLOEXEC, 1100);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (fd < 0) GTEST_SKIP() << too_few_descriptors(1102);
  Datagram socket = std::move(*Datagram::adopt(*loop, fd));
  log_.then = [&] {
    socket.pause();
    socket.resume();  // Calling it again does not retry the kernel sooner.
  };
  socket.start(log_);
  bool over = false;
  Timer end(*loop, [&] { over = true; });
  ASSERT_TRUE(end.start(std::chrono::milliseconds(300)));
  while (!over) {
    socket.resume();  // Neither does this, in every turn.
    loop->run(Run::once);
  }
  EXPECT_EQ(log_.errors, 1);
  EXPECT_EQ(log_.error, std::errc::result_out_of_range);
  EXPECT_LT(loop->iteration(), 50u);
}

TEST_F(DatagramLimitsTest, IsRegisteredAgainWhenKernelAllowsIt) {
  Datagram receiver = open();
  Datagram sender = open();
  for (int round = 1; round <= 2; ++round) {
    sender.send(bytes_of("x"), receiver.local_address());
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, ENOSPC, 3);
    const FaultScope scope(plan);
    receiver.pause();
    receiver.start(log_);
    run_until(loop_, [&] { return log_.batches == round; });
    EXPECT_EQ(plan.failures(SystemCall::epoll_ctl), 3u);
    EXPECT_EQ(log_.errors, round);  // Once for the three.
    EXPECT_EQ(log_.error, std::errc::no_space_on_device);
    run_turns(loop_, 2);
    receiver.pause();
    run_turns(loop_, 2);  // Updates the kernel's registration.
  }
}

TEST_F(DatagramLimitsTest, MayBeDestroyedWhileRegistrationIsDeferred) {
  Datagram receiver = open();
  log_.then = [&] { receiver = Datagram(); };
  with_fault(SystemCall::epoll_ctl, ENOMEM, [&] {
    receiver.start(log_);
    run_until(loop_, [&] { return log_.errors == 1; });
  });
  EXPECT_TRUE(runs_out(loop_));
  Datagram paused = open();
  log_.then = [&] { paused.pause(); };
  with_fault(SystemCall::epoll_ctl, ENOMEM, [&] {
    paused.start(log_);
    run_until(loop_, [&] { return log_.errors == 2; });
  });
  EXPECT_TRUE(runs_out(loop_));
}

// ---- after the end

TEST_F(DatagramLimitsTest, OutlivesItsLoop) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  owned_.reset();
  EXPECT_FALSE(sender.send(bytes_of("still"), to));
  EXPECT_TRUE(with_fault(SystemCall::send, EAGAIN, [&] { return sender.send(bytes_of("x"), to); }));
  receiver.pause();
  receiver.resume();
  receiver.start(log_);
  char bytes[10];
  EXPECT_EQ(::recv(receiver.fd(), bytes, sizeof(bytes), MSG_DONTWAIT), 5);
  EXPECT_EQ(log_.batches + log_.errors + log_.writable, 0);
}

// A sender to a unix socket may attach descriptors.
TEST_F(DatagramLimitsTest, AcceptsNoDescriptors) {
  Datagram receiver =
      open_at(own_name("r"), {.local_address = true, .ecn = true, .coalesce = true});
  Datagram sender = open_at(own_name("s"));
  receiver.start(log_);
  const Address to = receiver.local_address();
  char text[] = "with a descriptor";
  iovec part{.iov_base = text, .iov_len = sizeof(text) - 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = const_cast<void*>(to.data());
  message.msg_namelen = static_cast<socklen_t>(to.size());
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int given = sender.fd();
  std::memcpy(CMSG_DATA(header), &given, sizeof(given));
  const std::vector<int> before = open_fds();
  for (int i = 0; i < 3; ++i) ASSERT_GT(::sendmsg(sender.fd(), &message, 0), 0);
  run_until(loop_, [&] { return log_.texts.size() == 3; });
  EXPECT_EQ(log_.texts[2], text);
  EXPECT_FALSE(log_.all[2].truncated);
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace spate::testing
