// Every call that src/net makes fails, with every possible error: the first time, the second, the
// third ... until a run succeeds. Each time everything works or is reported, once, and nothing is
// left open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/workers.h"
#include "streams/harness.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

struct Fault {
  SystemCall call;
  const char* name;
  std::vector<int> errors;
};

// shutdown() is not included: the kernel rejects it only for a connection that has failed already,
// which the read reports as well.
const std::vector<Fault> kOfSockets = {
    {SystemCall::epoll_create, "epoll_create", {EMFILE, ENFILE, ENOMEM}},
    {SystemCall::eventfd, "eventfd", {EMFILE, ENFILE, ENOMEM}},
    {SystemCall::epoll_ctl, "epoll_ctl", {ENOMEM, ENOSPC}},
    {SystemCall::epoll_wait, "epoll_wait", {EINTR}},
    {SystemCall::socket, "socket", {EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES}},
    {SystemCall::bind, "bind", {EADDRINUSE, EADDRNOTAVAIL, EACCES}},
    {SystemCall::listen, "listen", {EADDRINUSE}},
    {SystemCall::accept,
     "accept",
     {EAGAIN, EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO, ENETDOWN}},
    {SystemCall::connect,
     "connect",
     {EINTR, EAGAIN, ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, ETIMEDOUT, EACCES}},
    {SystemCall::receive,
     "receive",
     {EAGAIN, EINTR, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENOBUFS, ENOMEM}},
    {SystemCall::send,
     "send",
     {EAGAIN, EINTR, ECONNRESET, EPIPE, ETIMEDOUT, EHOSTUNREACH, ENOBUFS, ENOMEM}},
    {SystemCall::socket_option, "socket_option", {ENOPROTOOPT, ENOBUFS, ENOMEM}},
    {SystemCall::allocate, "allocate", {ENOMEM}},
};

const std::vector<Fault> kOfPipes = {
    {SystemCall::epoll_ctl, "epoll_ctl", {ENOMEM, ENOSPC}},
    {SystemCall::read, "read", {EAGAIN, EINTR, EIO, ENOMEM}},
    {SystemCall::write, "write", {EAGAIN, EINTR, EPIPE, EIO, ENOSPC}},
    {SystemCall::allocate, "allocate", {ENOMEM}},
};

// Makes each call fail at its first time, its second, ... once, and three times in a row. Memory
// fails only once: an error that cannot be queued at all cannot be reported.
void sweep(const std::vector<Fault>& faults, std::uint64_t max,
           const std::function<void()>& scenario) {
  scenario();
  const std::vector<int> before = open_fds();
  std::uint64_t failures = 0;
  for (const Fault& fault : faults) {
    for (const int error : fault.errors) {
      for (const std::uint64_t times : {1u, 3u}) {
        bool failed = fault.call != SystemCall::allocate || times == 1;
        for (std::uint64_t nth = 1; failed && nth <= max; ++nth) {
          SCOPED_TRACE(::testing::Message()
                       << fault.name << " number " << nth << " fails " << times
                       << " times: " << std::generic_category().message(error));
          FaultPlan plan;
          plan.fail_nth(fault.call, nth, error, times);
          {
            const FaultScope scope(plan);
            scenario();
          }
          failures += plan.failures(fault.call);
          failed = plan.failures(fault.call) > 0;
          ASSERT_EQ(open_fds(), before);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(failures, faults.size() * 2);
}

constexpr std::uint64_t kMax = 12;

// ---- a connection, from the listener to the end

class Conversation {
 public:
  void run(Loop& loop, const Address& at) {
    Result<Listener> made = Listener::create(loop, at, [this](Stream stream, const Address&) {
      Peer& peer = servers_.emplace_back();
      peer.stream = std::move(stream);
      peer.log.use = [&peer](Bytes bytes) {
        peer.stream.write(bytes);
        return bytes.size();
      };
      peer.stream.start(peer.log);
    });
    if (!made) return expect_error(made.error());
    const Address address = made->address();
    Connecting connecting = connect(loop, address, [this](auto result) { on_connected(result); });
    run_until(loop, [this] { return is_settled(); });
    EXPECT_EQ(results_, 1);
    if (client_) {
      EXPECT_EQ(client_->log.closed_calls, 1);
    }
    const bool works = client_ && !client_->log.error && servers_.size() == 1;
    if (works && !servers_.front().log.error) {
      EXPECT_TRUE(client_->log.received == sent_);
    }
  }

 private:
  struct Peer {
    Stream stream;
    Recorder log;
  };

  void on_connected(Result<Stream>& result) {
    ++results_;
    if (!result) return expect_error(result.error());
    client_.emplace();
    client_->stream = std::move(*result);
    client_->log.use = [this](Bytes bytes) {
      received_ += bytes.size();
      if (received_ == sent_.size()) client_->stream.end();
      return bytes.size();
    };
    client_->stream.start(client_->log);
    client_->stream.write(sent_);
  }
  bool is_settled() const {
    if (results_ == 0 || (client_ && client_->log.closed_calls == 0)) return false;
    for (const Peer& peer : servers_) {
      if (peer.log.closed_calls == 0) return false;
    }
    return true;
  }
  static void expect_error(std::error_code error) { EXPECT_TRUE(error); }

  const std::string sent_ = pattern(300'000);
  std::size_t received_ = 0;
  int results_ = 0;
  std::optional<Peer> client_;
  std::list<Peer> servers_;
};

TEST(SystemCallFaults, ConnectionWorksOrReportsError) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Conversation().run(**loop, Address::loopback_ipv4(0));
  });
}

TEST(SystemCallFaults, UnixConnectionWorksOrReportsError) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Conversation().run(**loop, *Address::abstract("spate faults " + std::to_string(::getpid())));
  });
}

TEST(SystemCallFaults, PairWorksOrReportsError) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(**loop);
    if (!pair) return;
    Recorder left;
    Recorder right;
    pair->first.start(left);
    pair->second.start(right);
    const std::string sent = pattern(600'000);
    pair->first.write(sent);
    pair->first.end();
    run_until(**loop, [&] { return left.closed_calls == 1 && right.closed_calls == 1; });
    if (!left.error && !right.error) {
      EXPECT_TRUE(right.received == sent);
    }
  });
}

TEST(SystemCallFaults, PipeWorksOrReportsError) {
  sweep(kOfPipes, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    int fds[2];
    ASSERT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    Result<Stream> reader = Stream::adopt(**loop, fds[0]);
    Result<Stream> writer = Stream::adopt(**loop, fds[1]);
    if (!reader) ::close(fds[0]);
    if (!writer) ::close(fds[1]);
    if (!reader || !writer) return;
    Recorder read;
    Recorder written;
    reader->start(read);
    writer->start(written);
    const std::string sent = pattern(300'000);
    writer->write(sent);
    writer->end();
    run_until(**loop, [&] { return read.closed_calls == 1 && written.closed_calls == 1; });
    if (!read.error && !written.error) {
      EXPECT_TRUE(read.received == sent);
    }
  });
}

// ---- abandoned in the middle

TEST(SystemCallFaults, DestroyedStreamsReleaseTheirResources) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(**loop);
    if (!pair) return;
    Recorder left;
    Recorder right;
    pair->first.start(left);
    pair->second.start(right);
    pair->first.write(pattern(600'000));
    {
      const Stream gone = std::move(pair->first);
    }
    run_until(**loop, [&] { return right.closed_calls == 1; });
    EXPECT_EQ(left.log, "");
  });
}

TEST(SystemCallFaults, LoopMayBeDestroyedDuringManyOperations) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(**loop);
    if (!pair) return;
    Recorder left;
    Recorder right;
    right.use = [](Bytes bytes) { return bytes.size() / 2; };
    pair->first.start(left);
    pair->second.start(right);
    pair->first.set_idle_timeout(Nanos{1'000'000'000});
    pair->first.write(pattern(600'000));
    run_turns(**loop, 2);
    {
      const Stream gone = std::move(pair->first);
    }
    run_turns(**loop, 2);
    loop->reset();
  });
}

// ---- adopted sockets

// After an error the caller still owns the descriptor: a second close() could close another file.
TEST(SystemCallFaults, SocketThatIsNotAdoptedStaysOpen) {
  for (std::uint64_t nth = 1; nth < 20; ++nth) {
    const std::unique_ptr<Loop> loop = *Loop::create();
    const Address at = Address::loopback_ipv4(0);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(fd, static_cast<const sockaddr*>(at.data()), sizeof(sockaddr_in)), 0);
    ASSERT_EQ(::listen(fd, 1), 0);
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    {
      const FaultScope scope(plan);
      Result<Listener> made = Listener::adopt(*loop, fd, [](Stream, const Address&) {});
      EXPECT_EQ(plan.failures(SystemCall::allocate) > 0, !made);
      if (!made) {
        EXPECT_GE(::fcntl(fd, F_GETFD), 0);
        ::close(fd);
      }
    }
    EXPECT_LT(::fcntl(fd, F_GETFD), 0);
    if (plan.failures(SystemCall::allocate) == 0) return;
  }
  FAIL() << "it never gets by";
}

// ---- datagrams

class Packets final : public DatagramHandler {
 public:
  void on_packets(std::span<const Packet> packets) override { received += packets.size(); }
  void on_error(std::error_code error) override { EXPECT_TRUE(error); }
  void on_writable() override { ++writable; }
  std::size_t received = 0;
  int writable = 0;
};

TEST(SystemCallFaults, DatagramsContinue) {
  sweep(kOfSockets, kMax, [] {
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    if (!loop) return;
    Result<Datagram> from = Datagram::create(**loop, Address::loopback_ipv4(0), {.ecn = true});
    Result<Datagram> to =
        Datagram::create(**loop, Address::loopback_ipv4(0), {.local_address = true});
    if (!from || !to) return;
    Packets sender;
    Packets receiver;
    from->start(sender);
    to->start(receiver);
    const Address address = to->local_address();
    std::size_t sent = 0;
    for (int tries = 0; tries < 30 && sent < 20; ++tries) {
      const std::error_code error = from->send(bytes_of("packet"), address);
      sent += !error;
      if (error != std::errc::resource_unavailable_try_again && error != std::errc::no_buffer_space)
        continue;
      const int before = sender.writable;
      run_until(**loop, [&] { return sender.writable > before; });
    }
    EXPECT_EQ(sent, 20u);
    const std::string many(100 * 10, 'x');
    std::size_t segments = 0;
    for (int tries = 0; tries < 30 && segments < 10; ++tries) {
      const auto done = from->send_segments(bytes_of(many).subspan(segments * 100), 100, address);
      if (done) segments += *done / 100;
    }
    EXPECT_EQ(segments, 10u);
    run_until(**loop, [&] { return receiver.received >= 30; });
    EXPECT_EQ(receiver.received, 30u);
  });
}

// ---- workers

// Faults also occur on the workers' threads, in an undefined order.
void serve(Balance balance) {
  Result<std::unique_ptr<Loop>> loop = Loop::create();
  if (!loop) return;
  Result<std::unique_ptr<Workers>> workers = Workers::create({.threads = 2});
  if (!workers) return;
  const auto address = (*workers)->listen(
      Address::loopback_ipv4(0), [](Stream stream, const Address&) { new Echo(std::move(stream)); },
      balance);
  if (!address) {
    EXPECT_TRUE(address.error());
    return;
  }
  struct Client {
    Connecting connecting;
    Stream stream;
    Recorder log;
    bool is_done = false;
  };
  std::list<Client> clients(3);
  for (Client& client : clients) {
    client.log.use = [&client](Bytes bytes) {
      client.stream.end();
      return bytes.size();
    };
    client.connecting = connect(**loop, *address, [&client](auto made) {
      client.is_done = !made;
      if (!made) return;
      client.stream = std::move(*made);
      client.stream.start(client.log);
      client.stream.write("hello");
    });
  }
  run_until(**loop, [&] {
    for (const Client& client : clients) {
      if (!client.is_done && client.log.closed_calls == 0) return false;
    }
    return true;
  });
  EXPECT_TRUE((*workers)->stop(std::chrono::seconds(30)));
}

TEST(SystemCallFaults, WorkersServeOrReportError) {
  for (const Balance balance : {Balance::reuse_port, Balance::round_robin}) {
    sweep(kOfSockets, 5, [balance] { serve(balance); });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace spate::testing
