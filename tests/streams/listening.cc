// Listener and connect(): connections that are established.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "streams/listening.h"
#include "support/closed_port.h"
#include "sys/socket.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

TEST_F(Listening, SetsNoDelayUnlessDisabled) {
  for (const bool wanted : {true, false}) {
    Listener listener = listen({.no_delay = wanted});
    Connecting connecting = connect(loop_, listener.address(), keep());
    run_until(loop_, [&] { return accepted_.size() == 1; });
    EXPECT_EQ(sys::has_no_delay(accepted_.front().stream.fd()), wanted);
    accepted_.clear();
  }
}

TEST_F(Listening, SetsNoDelayForAdoptedSocket) {
  const Address any = Address::loopback_ipv4(0);
  sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
  ASSERT_EQ(sys::bind(socket.get(), any.data(), any.size()), 0);
  ASSERT_EQ(sys::listen(socket.get(), 1), 0);
  Result<Listener> listener = Listener::adopt(loop_, socket.get(), collect());
  ASSERT_TRUE(listener);
  EXPECT_FALSE(sys::has_no_delay(socket.release()));
  Connecting connecting = connect(loop_, listener->address(), keep());
  run_until(loop_, [&] { return accepted_.size() == 1; });
  EXPECT_TRUE(sys::has_no_delay(accepted_.front().stream.fd()));
}

// Limits the bytes that the kernel takes for a peer that does not read: the peer's buffer, and
// max_unsent more.
TEST_F(Listening, LimitsUnsentBytesInKernel) {
  Listener listener = listen({.max_unsent = 50'000});
  Connecting connecting = connect(loop_, listener.address(), keep());
  run_until(loop_, [&] { return accepted_.size() == 1; });
  int unsent = 0;
  socklen_t size = sizeof(unsent);
  const int fd = accepted_.front().stream.fd();
  ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size), 0);
  EXPECT_EQ(unsent, 50'000);
}

TEST_F(Listening, ConnectsStreamToStream) {
  Listener listener = listen();
  Connecting connecting = connect(loop_, listener.address(), keep());
  EXPECT_EQ(results_, 0);
  run_until(loop_, [&] { return accepted_.size() == 1 && connected_.size() == 1; });
  EXPECT_EQ(connected_.front().peer_address(), listener.address());
  Recorder log;
  connected_.front().start(log);
  connected_.front().write("hello");
  run_until(loop_, [&] { return accepted_.front().log.received == "hello"; });
  EXPECT_EQ(listener.accepted(), 1u);
  EXPECT_EQ(listener.connections(), 1u);
  connected_.clear();
  run_until(loop_, [&] { return accepted_.front().log.closed_calls == 1; });
  EXPECT_EQ(listener.connections(), 0u);
}

TEST_F(Listening, ReportsConnectionRefused) {
  Connecting connecting = connect(loop_, closed_ipv4(), keep());
  EXPECT_EQ(results_, 0);
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(error_, std::errc::connection_refused);
}

TEST_F(Listening, TriesNextAddressAfterRefusal) {
  Listener listener = listen();
  Connecting connecting = connect(loop_, {closed_ipv4(), Address(), listener.address()}, keep());
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_EQ(connected_.size(), 1u);
}

TEST_F(Listening, AttemptIsPendingUntilItsCallback) {
  Listener listener = listen();
  EXPECT_FALSE(Connecting().is_pending());
  bool was_pending = true;
  Connecting connecting;
  connecting = connect(loop_, listener.address(), [&](Result<Stream>) {
    ++results_;
    was_pending = connecting.is_pending();
  });
  EXPECT_TRUE(connecting.is_pending());
  run_until(loop_, [&] { return results_ == 1; });
  EXPECT_FALSE(was_pending);
  EXPECT_FALSE(connecting.is_pending());
  connecting = connect(loop_, listener.address(), keep());
  connecting.cancel();
  EXPECT_FALSE(connecting.is_pending());
}

TEST_F(Listening, CancelledAttemptCallsNothing) {
  Listener listener = listen();
  {
    Connecting connecting = connect(loop_, listener.address(), keep());
  }
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_EQ(results_, 0);
}

TEST_F(Listening, PausesAtItsLimitAndResumesBelowIt) {
  Listener listener = listen({.max_connections = 2});
  std::list<Connecting> attempts;
  for (int i = 0; i < 4; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 4 && accepted_.size() == 2; });
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_EQ(accepted_.size(), 2u);
  accepted_.front().stream.abort();
  run_until(loop_, [&] { return accepted_.size() == 3; });
}

TEST_F(Listening, BacksOffWithoutDescriptorsAndRecovers) {
  Listener listener = listen();
  FaultPlan plan;
  plan.fail_share(SystemCall::accept, 1, EMFILE, 1);
  Connecting connecting;
  {
    FaultScope scope(plan);
    connecting = connect(loop_, listener.address(), keep());
    run_until(loop_, [&] { return listener.last_error() == std::errc::too_many_files_open; });
    const std::uint64_t turns = loop_.metrics().turns;
    run_until(loop_, [&] { return plan.calls(SystemCall::accept) >= 3; });
    EXPECT_LT(loop_.metrics().turns - turns, 20u);
  }
  run_until(loop_, [&] { return accepted_.size() == 1; });
}

TEST_F(Listening, ListensAtPathAndReplacesStaleSocket) {
  const std::string path = "spate_listening_test.sock";
  const Address address = *Address::path(path);
  {
    ASSERT_TRUE(Listener::create(loop_, address, collect()));
  }
  Result<Listener> second = Listener::create(loop_, address, collect());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->address(), address);
  EXPECT_EQ(Listener::create(loop_, address, collect()).error(), std::errc::address_in_use);
  Connecting connecting = connect(loop_, address, keep());
  run_until(loop_, [&] { return connected_.size() == 1 && !accepted_.empty(); });
  std::remove(path.c_str());
}

TEST_F(Listening, MayBeDestroyedInsideItsCallback) {
  std::optional<Listener> listener;
  int calls = 0;
  Result<Listener> made =
      Listener::create(loop_, Address::loopback_ipv4(0), [&](Stream, const Address&) {
        ++calls;
        listener.reset();
      });
  ASSERT_TRUE(made);
  listener.emplace(std::move(*made));
  const Address address = listener->address();
  std::list<Connecting> attempts;
  for (int i = 0; i < 3; ++i) attempts.push_back(connect(loop_, address, keep()));
  run_until(loop_, [&] { return calls == 1 && results_ == 3; });
  EXPECT_EQ(calls, 1);
}

TEST_F(Listening, LeavesConnectionsInBacklogWhilePaused) {
  Listener listener = listen();
  listener.pause();
  Connecting connecting = connect(loop_, listener.address(), keep());
  run_until(loop_, [&] { return connected_.size() == 1; });
  run_turns(loop_, 5);
  EXPECT_EQ(listener.accepted(), 0u);
  listener.resume();
  run_until(loop_, [&] { return accepted_.size() == 1; });
  EXPECT_EQ(listener.accepted(), 1u);
}

TEST_F(Listening, AcceptsNothingAfterPauseInsideItsCallback) {
  std::optional<Listener> listener;
  std::list<Stream> guests;
  listener =
      *Listener::create(loop_, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        guests.push_back(std::move(stream));
        listener->pause();
      });
  std::list<Connecting> attempts;
  for (int i = 0; i < 3; ++i) attempts.push_back(connect(loop_, listener->address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 3 && guests.size() == 1; });
  run_turns(loop_, 3);
  EXPECT_EQ(guests.size(), 1u);
  listener->resume();
  run_until(loop_, [&] { return guests.size() == 2; });
  run_turns(loop_, 3);
  EXPECT_EQ(guests.size(), 2u);
}

TEST_F(Listening, AcceptsAtMostConfiguredNumberPerTurn) {
  Listener listener = listen({.accepts_per_turn = 3});
  listener.pause();
  std::list<Connecting> attempts;
  for (int i = 0; i < 10; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 10; });
  listener.resume();
  for (std::size_t before = 0; before < 10; before = accepted_.size()) {
    ASSERT_FALSE(loop_.run(Run::once));
    ASSERT_LE(accepted_.size(), before + 3);
  }
}

// Runs in a child, which inherits a listening socket, as from a service manager.
int serve_inherited(int listening) {
  if (::dup2(listening, 3) != 3) return 1;
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "1", 1);
  const std::vector<int> fds = Listener::inherited();
  if (fds != std::vector<int>{3} || ::getenv("LISTEN_FDS") != nullptr) return 2;
  if ((::fcntl(3, F_GETFD) & FD_CLOEXEC) == 0 || !Listener::inherited().empty()) return 3;
  const std::unique_ptr<Loop> loop = *Loop::create();
  bool served = false;
  const Result<Listener> listener =
      Listener::adopt(*loop, fds[0], [&](Stream stream, const Address&) {
        served = stream.write("served");
        stream.close();
        loop->stop();
      });
  if (!listener) return 4;
  loop->run();
  return served ? 0 : 5;
}

TEST_F(Listening, AdoptsSocketFromServiceManager) {
  const Address any = Address::loopback_ipv4(0);
  sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
  ASSERT_EQ(sys::bind(socket.get(), any.data(), any.size()), 0);
  ASSERT_EQ(sys::listen(socket.get(), 1), 0);
  sys::SystemAddress at;
  ASSERT_EQ(sys::local_address(socket.get(), at), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(serve_inherited(socket.get()));
  Connecting connecting = connect(loop_, *Address::from_system(at.get(), at.size), keep());
  run_until(loop_, [&] { return connected_.size() == 1; });
  Recorder log;
  connected_.front().start(log);
  run_until(loop_, [&] { return log.closed_calls == 1; });
  EXPECT_EQ(log.received, "served");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// More than the number of descriptors, and than an int holds.
int inherit_too_many(int listening) {
  if (::dup2(listening, 3) != 3) return 1;
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "2147483647", 1);
  const std::vector<int> fds = Listener::inherited();
  return !fds.empty() && fds.front() == 3 ? 0 : 2;
}

TEST_F(Listening, InheritsOnlyOpenSocketsForAnyCount) {
  const Address any = Address::loopback_ipv4(0);
  const sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
  ASSERT_EQ(sys::bind(socket.get(), any.data(), any.size()), 0);
  ASSERT_EQ(sys::listen(socket.get(), 1), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(inherit_too_many(socket.get()));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Listening, InheritsNothingMeantForAnotherProcess) {
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  EXPECT_TRUE(Listener::inherited().empty());
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "many", 1);
  EXPECT_TRUE(Listener::inherited().empty());
}

// As passed by spawn(), which does not know the number of the new process.
TEST_F(Listening, InheritsFromItsParentOnly) {
  const int socket = must(Listener::open(Address::loopback_ipv4(0)));
  for (const bool is_parent : {true, false}) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::setenv("SPATE_LISTEN_PARENT", std::to_string(is_parent ? parent : ::getpid()).c_str(), 1);
      ::setenv("LISTEN_FDS", "1", 1);
      if (socket != 3) ::dup2(socket, 3);
      const std::vector<int> fds = Listener::inherited();
      const bool is_unset = ::getenv("SPATE_LISTEN_PARENT") == nullptr;
      ::_exit(fds.size() == (is_parent ? 1U : 0U) && is_unset == is_parent ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << is_parent;
  }
  ::close(socket);
}

TEST_F(Listening, AcceptsFromGivenSocketThatStaysCallers) {
  const int socket = must(Listener::open(Address::loopback_ipv4(0)));
  const Address none = Address::any_ipv6(1);  // Is ignored.
  Listener first = must(Listener::create(loop_, none, collect(), {.socket = socket}));
  EXPECT_NE(first.fd(), socket);
  const Address address = first.address();
  EXPECT_EQ(address.host(), Address::loopback_ipv4(0).host());
  first.close();
  while (first.is_open()) loop_.run(Run::once);
  // The socket still listens: a connection waits for the next Listener.
  Connecting connecting = connect(loop_, address, keep());
  Listener second = must(Listener::create(loop_, none, collect(), {.socket = socket}));
  EXPECT_EQ(second.address(), address);
  while (second.accepted() < 1) loop_.run(Run::once);
  EXPECT_EQ(::close(socket), 0);
}

TEST_F(Listening, RefusesGivenSocketThatDoesNotListen) {
  const Address any = Address::loopback_ipv4(0);
  const sys::Descriptor socket(sys::open_socket(AF_INET, SOCK_STREAM));
  const auto error = [&](ListenOptions options) {
    return Listener::create(loop_, any, collect(), options).error();
  };
  EXPECT_EQ(error({.socket = socket.get()}), std::errc::invalid_argument);
  EXPECT_EQ(error({.socket = 9999}), std::errc::bad_file_descriptor);
  EXPECT_EQ(error({.socket = STDIN_FILENO}), std::errc::not_a_socket);
  const int listening = must(Listener::open(any));
  EXPECT_EQ(error({.reuse_port = true, .socket = listening}), std::errc::invalid_argument);
  FaultPlan plan;
  plan.fail_nth(SystemCall::duplicate, 1, EMFILE);
  const FaultScope scope(plan);
  EXPECT_EQ(error({.socket = listening}), std::errc::too_many_files_open);
  EXPECT_EQ(::close(listening), 0);
}

TEST_F(Listening, ReplacesOnlySocketsWithoutListener) {
  const std::string path = "spate_listening_files_test";
  const Address address = *Address::path(path);
  const auto error = [&] { return Listener::create(loop_, address, collect()).error(); };
  std::remove(path.c_str());

  // A file that is not a socket refuses connections, too.
  {
    const std::ofstream file(path);
  }
  EXPECT_EQ(error(), std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
  std::remove(path.c_str());

  const std::string target = path + ".target";
  {
    ASSERT_TRUE(Listener::create(loop_, *Address::path(target), collect()));
  }
  ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
  EXPECT_EQ(error(), std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_TRUE(std::filesystem::is_socket(target));
  std::remove(path.c_str());
  std::remove(target.c_str());

  const sys::Descriptor datagrams(sys::open_socket(AF_UNIX, SOCK_DGRAM));
  ASSERT_EQ(sys::bind(datagrams.get(), address.data(), address.size()), 0);
  EXPECT_EQ(error(), std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  std::remove(path.c_str());
}

TEST_F(Listening, DoesNotReplaceSocketOfBusyServer) {
  const std::string path = "spate_listening_busy_test";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  Result<Listener> busy = Listener::create(loop_, address, collect(), {.backlog = 0});
  ASSERT_TRUE(busy);
  busy->pause();
  std::list<sys::Descriptor> waiting;
  long result = 0;
  while (result >= 0) {
    waiting.emplace_back(sys::open_socket(AF_UNIX, SOCK_STREAM));
    result = sys::connect(waiting.back().get(), address.data(), address.size());
  }
  ASSERT_EQ(result, -EAGAIN);
  EXPECT_EQ(Listener::create(loop_, address, collect()).error(), std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  std::remove(path.c_str());
}

TEST_F(Listening, DoesNotReplaceStaleSocketIfDisabled) {
  const std::string path = "spate_listening_stale_test";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  {
    ASSERT_TRUE(Listener::create(loop_, address, collect()));
  }
  EXPECT_EQ(Listener::create(loop_, address, collect(), {.replace_path = false}).error(),
            std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  std::remove(path.c_str());
}

// Both found the socket stale, and the second removed the first one's.
TEST_F(Listening, OnlyOneListenerReplacesStaleSocket) {
  const std::string path = "spate_listening_race_test";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  {
    const sys::Descriptor stale(sys::open_socket(AF_UNIX, SOCK_STREAM));
    ASSERT_EQ(sys::bind(stale.get(), address.data(), address.size()), 0);
  }
  std::optional<Result<Listener>> second;
  FaultPlan plan;
  plan.before_nth(SystemCall::lstat, 1,
                  [&] { second.emplace(Listener::create(loop_, address, collect())); });
  std::optional<FaultScope> scope(plan);
  const Result<Listener> first = Listener::create(loop_, address, collect());
  scope.reset();
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(first);
  ASSERT_FALSE(*second);
  EXPECT_EQ(second->error(), std::errc::address_in_use);
  const Connecting connecting = connect(loop_, address, keep());
  run_until(loop_, [&] { return accepted_.size() == 1; });
  EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
  std::remove(path.c_str());
}

// A second program's probe must not count as a connection.
TEST_F(Listening, IgnoresProbesForStaleSockets) {
  const std::string path = "spate_listening_probe_test";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  const Listener listener = must(Listener::create(loop_, address, collect()));
  EXPECT_EQ(Listener::create(loop_, address, collect()).error(), std::errc::address_in_use);
  run_turns(loop_, 10);
  EXPECT_EQ(listener.accepted(), 0u);
  std::remove(path.c_str());
}

TEST_F(Listening, DoesNotReplaceBoundSocketBeforeListen) {
  const std::string path = "spate_listening_bound_test";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  const sys::Descriptor bound(sys::open_socket(AF_UNIX, SOCK_STREAM));
  ASSERT_GE(sys::bind(bound.get(), address.data(), address.size()), 0);
  EXPECT_EQ(Listener::create(loop_, address, collect()).error(), std::errc::address_in_use);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  std::remove(path.c_str());
}

// A full backlog drops further SYNs.
TEST_F(Listening, AttemptTimesOut) {
  Listener listener = listen({.backlog = 0});
  listener.pause();
  std::list<sys::Descriptor> filling;
  const Address address = listener.address();
  for (int i = 0; i < 2; ++i) {
    filling.emplace_back(sys::open_socket(AF_INET, SOCK_STREAM));
    sys::connect(filling.back().get(), address.data(), address.size());
  }
  const Nanos began = loop_.now();
  std::list<Connecting> attempts;
  for (int i = 0; i < 10; ++i)
    attempts.push_back(connect(loop_, address, keep(), {.timeout = 50ms}));
  run_until(loop_, [&] { return results_ == 10; });
  EXPECT_TRUE(connected_.empty());
  EXPECT_EQ(error_, Error::connect_timeout);
  EXPECT_GE(loop_.now() - began, 50ms);
}

}  // namespace
}  // namespace spate::testing
