// Listener: destroyed, replaced, limited, closed and given away, in its callback and outside.
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/fault.h"
#include "streams/listening.h"
#include "support/own_loopback.h"
#include "sys/socket.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

TEST_F(Listening, CloseAcceptsBacklogOfAnySize) {
  for (const int backlog : {-1, 4096}) {
    Listener listener = listen({.backlog = backlog});
    listener.pause();
    std::list<Connecting> attempts;
    for (int i = 0; i < 5; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
    run_until(loop_, [&] { return connected_.size() == 5; });
    listener.close();
    run_turns(loop_, 5);
    EXPECT_EQ(accepted_.size(), 5u) << backlog;
    connected_.clear();
    accepted_.clear();
  }
}

// ---- in the callback

TEST_F(Listening, MayBeDestroyedInsideItsCallbackAfterNestedRun) {
  std::optional<Listener> listener;
  int depth = 0;
  Result<Listener> made =
      Listener::create(loop_, Address::loopback_ipv4(0), [&](Stream, const Address&) {
        if (++depth != 2) return;
        run_turns(loop_, 2);
        EXPECT_EQ(depth, 4);
        listener.reset();
      });
  ASSERT_TRUE(made);
  listener.emplace(std::move(*made));
  listener->pause();
  std::list<Connecting> attempts;
  for (int i = 0; i < 4; ++i) attempts.push_back(connect(loop_, listener->address(), keep()));
  run_until(loop_, [&] { return results_ == 4; });
  listener->resume();
  run_turns(loop_, 5);
  EXPECT_EQ(depth, 4);
}

TEST_F(Listening, IsNotCalledInNestedRunAfterItWasDestroyed) {
  const std::size_t descriptors = open_fds().size();
  std::optional<Listener> listener;
  Stream kept;
  int calls = 0;
  Result<Listener> made = Listener::create(
      loop_, Address::loopback_ipv4(0),
      [&](Stream stream, const Address&) {
        ++calls;
        kept = std::move(stream);
        listener.reset();
        EXPECT_EQ(open_fds().size(),
                  descriptors + 4);  // Three peers and this end.
        kept = Stream();             // Frees a place in a full listener.
        run_turns(loop_, 3);
      },
      {.accepts_per_turn = 1, .max_connections = 1});
  ASSERT_TRUE(made);
  listener.emplace(std::move(*made));
  std::list<Connecting> attempts;
  listener->pause();
  for (int i = 0; i < 3; ++i) attempts.push_back(connect(loop_, listener->address(), keep()));
  run_until(loop_, [&] { return results_ == 3; });
  listener->resume();
  run_turns(loop_, 5);
  EXPECT_EQ(calls, 1);
}

// ---- handles

TEST_F(Listening, IsSafeWhenItIsEmpty) {
  Listener moved = listen();
  const Listener to = std::move(moved);
  Listener fresh;
  for (Listener* empty : {&fresh, &moved}) {
    empty->pause();
    empty->resume();
    empty->close();
    EXPECT_EQ(empty->address(), Address());
    EXPECT_EQ(empty->fd(), -1);
    EXPECT_FALSE(empty->is_open());
    EXPECT_EQ(empty->accepted(), 0u);
    EXPECT_EQ(empty->connections(), 0u);
    EXPECT_FALSE(empty->last_error());
    EXPECT_EQ(empty->release().error(), std::errc::bad_file_descriptor);
  }
}

TEST_F(Listening, ClosesOldSocketOnMoveAssignment) {
  Listener listener = listen();
  const int fd = listener.fd();
  Listener other = listen();
  const int kept = other.fd();
  listener = std::move(other);
  EXPECT_FALSE(sys::is_open(fd));
  EXPECT_EQ(listener.fd(), kept);
  EXPECT_EQ(other.fd(), -1);
  Listener& same = listener;
  listener = std::move(same);
  EXPECT_EQ(listener.fd(), kept);
}

// ---- limits

TEST_F(Listening, AcceptsAtLeastOnePerTurn) {
  for (const int few : {0, -1}) {
    Listener listener = listen({.accepts_per_turn = few});
    Connecting connecting = connect(loop_, listener.address(), keep());
    run_until(loop_, [&] { return accepted_.size() == 1; });
    accepted_.clear();
  }
}

TEST_F(Listening, AcceptsNothingIfItsLimitIsZero) {
  Listener listener = listen({.max_connections = 0});
  Connecting connecting = connect(loop_, listener.address(), keep());
  run_until(loop_, [&] { return connected_.size() == 1; });
  run_turns(loop_, 5);
  listener.resume();
  run_turns(loop_, 5);
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(Listening, RespectsItsLimitInNestedRun) {
  std::vector<Stream> taken;
  std::optional<Listener> listener;
  Result<Listener> made = Listener::create(loop_, Address::loopback_ipv4(0),
                                           [&](Stream stream, const Address&) {
                                             taken.push_back(std::move(stream));
                                             run_turns(loop_, 5);
                                             EXPECT_EQ(listener->connections(), 1u);
                                           },
                                           {.max_connections = 1});
  ASSERT_TRUE(made);
  listener = std::move(*made);
  std::list<Connecting> attempts;
  for (int i = 0; i < 3; ++i) attempts.push_back(connect(loop_, listener->address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 3 && taken.size() == 1; });
  run_turns(loop_, 5);
  EXPECT_EQ(taken.size(), 1u);
}

TEST_F(Listening, ContinuesWhenConnectionIsReleased) {
  Listener listener = listen({.max_connections = 1});
  std::list<Connecting> attempts;
  for (int i = 0; i < 2; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 2 && accepted_.size() == 1; });
  const Result<int> fd = accepted_.front().stream.release();
  ASSERT_TRUE(fd);
  const sys::Descriptor socket(*fd);
  EXPECT_EQ(listener.connections(), 0u);
  run_until(loop_, [&] { return accepted_.size() == 2; });
  EXPECT_EQ(listener.connections(), 1u);
}

TEST_F(Listening, LimitsAcceptRateWithoutDescriptors) {
  Listener listener = listen();
  const auto calls_in_a_while = [&](int error) {
    FaultPlan plan;
    plan.fail_share(SystemCall::accept, 1, error, 1);
    const FaultScope scope(plan);
    Connecting connecting = connect(loop_, listener.address(), keep());
    run_until(loop_, [&] { return plan.calls(SystemCall::accept) >= 1; });
    const Nanos began = loop_.now();
    run_until(loop_, [&] { return loop_.now() - began >= 300ms; });
    EXPECT_EQ(listener.last_error().value(), error);
    return plan.calls(SystemCall::accept);
  };
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EXPECT_LE(calls_in_a_while(error), 7u);
    run_until(loop_, [&] { return accepted_.size() == 1; });
    accepted_.clear();
  }
}

TEST_F(Listening, DoesNotBackOffAfterErrorsOfOneConnection) {
  Listener listener = listen();
  for (const int error : {ECONNABORTED, EPROTO, EPERM, ENETDOWN, EINTR}) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::accept, 1, error);
    const FaultScope scope(plan);
    Connecting connecting = connect(loop_, listener.address(), keep());
    run_until(loop_, [&] { return accepted_.size() == 1; });
    EXPECT_FALSE(listener.last_error());
    accepted_.clear();
  }
}

// ---- the end

TEST_F(Listening, AcceptsPendingConnectionsBeforeClosing) {
  Listener listener = listen({.accepts_per_turn = 1}, own_address(0));
  listener.pause();
  const Address address = listener.address();
  std::list<Connecting> attempts;
  for (int i = 0; i < 10; ++i) attempts.push_back(connect(loop_, address, keep()));
  run_until(loop_, [&] { return connected_.size() == 10; });
  listener.close();
  EXPECT_TRUE(accepted_.empty());  // No callback comes inside this call.
  EXPECT_TRUE(listener.is_open());
  listener.close();
  listener.resume();
  run_until(loop_, [&] { return !listener.is_open(); });
  EXPECT_EQ(accepted_.size(), 10u);
  EXPECT_EQ(listener.accepted(), 10u);
  EXPECT_EQ(listener.connections(), 10u);
  for (Stream& stream : connected_) stream.end();
  for (Peer& peer : accepted_) run_until(loop_, [&] { return peer.log.closed_calls == 1; });
  EXPECT_EQ(listener.connections(), 0u);
  EXPECT_EQ(listener.fd(), -1);
  EXPECT_EQ(loop_.active_count(), 0);
  expect_refusal(address);
}

TEST_F(Listening, RespectsItsLimitWhenClosed) {
  Listener listener = listen({.max_connections = 3});
  std::list<Connecting> attempts;
  for (int i = 0; i < 6; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 6 && accepted_.size() == 3; });
  accepted_.front().stream.abort();
  listener.close();
  run_until(loop_, [&] { return !listener.is_open(); });
  EXPECT_EQ(listener.connections(), 3u);
}

TEST_F(Listening, AcceptsNothingWhenClosedAtItsLimit) {
  Listener listener = listen({.max_connections = 2});
  std::list<Connecting> attempts;
  for (int i = 0; i < 4; ++i) attempts.push_back(connect(loop_, listener.address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 4 && accepted_.size() == 2; });
  listener.close();
  run_until(loop_, [&] { return !listener.is_open(); });
  EXPECT_EQ(listener.accepted(), 2u);
}

TEST_F(Listening, ReceivesNoEventsOfReleasedSocket) {
  Listener first = listen();
  run_turns(loop_, 1);
  const std::unique_ptr<Loop> other = *Loop::create();
  const Result<Listener> second =
      Listener::adopt(*other, *first.release(), [](Stream, const Address&) {});
  ASSERT_TRUE(second);
  const Connecting connecting = connect(loop_, second->address(), keep());
  run_until(loop_, [&] { return connected_.size() == 1; });
  run_turns(loop_, 3);
  EXPECT_EQ(loop_.metrics().stale_events, 0u);
}

// By the time the kernel is updated, another thread may have opened the same number.
TEST_F(Listening, DoesNotUpdateKernelForClosedSocket) {
  std::optional<Listener> listener(listen());
  run_turns(loop_, 1);
  FaultPlan plan;
  const FaultScope scope(plan);
  listener->pause();
  listener.reset();
  run_turns(loop_, 2);
  EXPECT_EQ(plan.calls(SystemCall::epoll_ctl), 0u);
}

TEST_F(Listening, IsClosedAtOnceIfItsLoopIsDestroyed) {
  Listener listener = listen();
  Listener closing = listen();
  closing.close();
  accepted_.clear();
  owned_.reset();
  EXPECT_TRUE(listener.is_open());
  for (Listener* one : {&listener, &closing}) {
    one->pause();
    one->resume();
    one->close();
    EXPECT_FALSE(one->is_open());
    EXPECT_EQ(one->release().error(), std::errc::bad_file_descriptor);
  }
}

TEST_F(Listening, MayBeDestroyedWhileAcceptingLastConnection) {
  std::optional<Listener> listener;
  int calls = 0;
  listener = *Listener::create(loop_, Address::loopback_ipv4(0), [&](Stream, const Address&) {
    if (++calls == 2) listener.reset();
  });
  listener->pause();
  std::list<Connecting> attempts;
  for (int i = 0; i < 4; ++i) attempts.push_back(connect(loop_, listener->address(), keep()));
  run_until(loop_, [&] { return connected_.size() == 4; });
  listener->close();
  run_until(loop_, [&] { return !listener.has_value(); });
  run_turns(loop_, 3);
  EXPECT_EQ(calls, 2);
}

TEST_F(Listening, LosesNoConnectionWhenItsSocketIsReleased) {
  Listener first = listen();
  first.pause();
  const Address address = first.address();
  std::list<Connecting> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(connect(loop_, address, keep()));
  run_until(loop_, [&] { return connected_.size() == 5; });
  const Result<int> fd = first.release();
  ASSERT_TRUE(fd);
  EXPECT_EQ(first.fd(), -1);
  EXPECT_EQ(loop_.active_count(), 0);
  const std::unique_ptr<Loop> other = *Loop::create();
  int served = 0;
  const Result<Listener> second =
      Listener::adopt(*other, *fd, [&](Stream, const Address&) { ++served; });
  ASSERT_TRUE(second);
  run_until(*other, [&] { return served == 5; });
}

}  // namespace
}  // namespace spate::testing
