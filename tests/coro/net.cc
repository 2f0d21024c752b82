// Coroutines that accept and make connections, and look up names.
#include <gtest/gtest.h>

#include <vector>

#include "spate/coro/connect.h"
#include "spate/coro/listener.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "system/open_fds.h"
#include "tests/coro/promised.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Accepted;
using coro::Task;

class CoroNet : public ::testing::Test {
 protected:
  CoroNet() : loop_(must(Loop::create())) {}
  coro::Listener listen() {
    return must(coro::Listener::create(*loop_, Address::loopback_ipv4(0)));
  }
  static Address address(const coro::Listener& listener) { return listener.listener().address(); }
  // Makes connections that wait in the backlog.
  std::vector<spate::Stream> connections(const coro::Listener& to, int count) {
    std::vector<spate::Stream> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(must(coro::run(*loop_, connecting(address(to)))));
    }
    return all;
  }
  static Task<Result<spate::Stream>> connecting(Address to) {
    co_return co_await coro::connect(to);
  }
  void turns(int count = 5) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(loop_->run(Run::no_wait));
  }

  std::unique_ptr<Loop> loop_;
};

Task<Result<Accepted>> accepting(coro::Listener* from) { co_return co_await from->accept(); }

Task<void> count_newcomers(coro::Listener* from, std::vector<int>* order, int number) {
  const Result<Accepted> newcomer = co_await from->accept();
  EXPECT_TRUE(newcomer);
  order->push_back(number);
}

TEST_F(CoroNet, AcceptedConnectionHasPeerAddress) {
  coro::Listener listener = listen();
  const std::vector<spate::Stream> peers = connections(listener, 1);
  const Result<Accepted> newcomer = coro::run(*loop_, accepting(&listener));
  ASSERT_TRUE(newcomer);
  EXPECT_EQ(newcomer->peer, peers[0].local_address());
  EXPECT_TRUE(newcomer->stream.is_open());
}

TEST_F(CoroNet, ConnectionsWithoutWaiterStayInBacklog) {
  coro::Listener listener = listen();
  const std::vector<spate::Stream> peers = connections(listener, 3);
  turns();
  EXPECT_EQ(listener.listener().accepted(), 0u);
  EXPECT_TRUE(coro::run(*loop_, accepting(&listener)));
  turns();
  EXPECT_EQ(listener.listener().accepted(), 1u);
}

TEST_F(CoroNet, ListenerWithoutWaiterDoesNotKeepLoopAlive) {
  const coro::Listener listener = listen();
  EXPECT_FALSE(loop_->run());
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(CoroNet, AcceptsAreServedInOrder) {
  coro::Listener listener = listen();
  coro::Scope scope(*loop_);
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) scope.spawn(count_newcomers(&listener, &order, i));
  coro::Listener moved = std::move(listener);
  EXPECT_EQ(order, std::vector<int>());
  const std::vector<spate::Stream> peers = connections(moved, 3);
  turns();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(CoroNet, NextWaiterGetsConnectionOfCancelledAccept) {
  coro::Listener listener = listen();
  const std::vector<spate::Stream> peers = connections(listener, 1);
  coro::Scope scope(*loop_);
  std::vector<int> order;
  cancel_when_promised(*loop_, accepting(&listener),
                       [&] { scope.spawn(count_newcomers(&listener, &order, 1)); });
  turns();
  EXPECT_EQ(listener.listener().accepted(), 1u);
  EXPECT_EQ(order, std::vector<int>{1});
}

// A task that is destroyed while it waits inside until_stop() or or_return() leaves the listener
// unchanged.
Task<void> stops_accepting(coro::Listener* listener) {
  co_await coro::until_stop(listener->accept());
  ADD_FAILURE() << "it went on";
}
Task<Result<void>> accepts_or_returns(coro::Listener* listener) {
  co_await coro::or_return(listener->accept());
  ADD_FAILURE() << "it went on";
  co_return Result<void>();
}
TEST_F(CoroNet, WaiterDestroyedInUntilStopOrOrReturnHoldsNoReservation) {
  coro::Listener listener = listen();
  for (int i = 0; i < 2; ++i) {
    coro::Scope scope(*loop_);
    if (i == 0) scope.spawn(stops_accepting(&listener));
    if (i == 1) scope.spawn(accepts_or_returns(&listener));
    turns();
  }
  const std::vector<spate::Stream> peers = connections(listener, 1);
  cancel_when_promised(*loop_, accepting(&listener), [] {});
  EXPECT_EQ(listener.listener().accepted(), 1u);
  coro::Scope scope(*loop_);
  std::vector<int> order;
  scope.spawn(count_newcomers(&listener, &order, 1));
  turns();
  EXPECT_EQ(order, std::vector<int>{1});
}

TEST_F(CoroNet, ConnectionOfCancelledAcceptIsKeptForLaterOne) {
  coro::Listener listener = listen();
  const std::vector<spate::Stream> peers = connections(listener, 2);
  cancel_when_promised(*loop_, accepting(&listener), [] {});
  EXPECT_EQ(listener.listener().accepted(), 1u);
  EXPECT_TRUE(coro::run(*loop_, accepting(&listener)));
  EXPECT_EQ(listener.listener().accepted(), 1u);
  EXPECT_TRUE(coro::run(*loop_, accepting(&listener)));
  EXPECT_EQ(listener.listener().accepted(), 2u);
}

TEST_F(CoroNet, CancelledAcceptConsumesNothing) {
  coro::Listener listener = listen();
  const auto impatient = [](Task<Result<Accepted>> one) -> Task<void> {
    const Result<Accepted> none = co_await coro::with_deadline(1ms, std::move(one));
    EXPECT_EQ(none.error(), Error::deadline);
  };
  coro::run(*loop_, impatient(accepting(&listener)));
  const std::vector<spate::Stream> peers = connections(listener, 1);
  EXPECT_EQ(listener.listener().accepted(), 0u);
  EXPECT_TRUE(coro::run(*loop_, accepting(&listener)));
}

TEST_F(CoroNet, AcceptingTaskMayCloseListener) {
  auto listener = std::make_unique<coro::Listener>(listen());
  const auto once = [](std::unique_ptr<coro::Listener>* from) -> Task<void> {
    const Result<Accepted> newcomer = co_await (*from)->accept();
    EXPECT_TRUE(newcomer);
    from->reset();
  };
  coro::Scope scope(*loop_);
  scope.spawn(once(&listener));
  const std::vector<spate::Stream> peers = connections(*listener, 1);
  turns();
  EXPECT_EQ(listener, nullptr);
  EXPECT_TRUE(scope.empty());
}

TEST_F(CoroNet, ServerStopsAccepting) {
  const auto serve = [](coro::Listener* listener, int* accepted) -> Task<void> {
    for (;;) {
      const Result<Accepted> next = co_await coro::until_stop(listener->accept());
      if (!next && next.error() == std::errc::operation_canceled) co_return;
      EXPECT_TRUE(next);
      ++*accepted;
    }
  };
  coro::Listener listener = listen();
  coro::Scope scope(*loop_);
  int accepted = 0;
  scope.spawn(serve(&listener, &accepted));
  const std::vector<spate::Stream> peers = connections(listener, 3);
  turns();
  scope.stop();
  turns();
  EXPECT_EQ(accepted, 3);
  EXPECT_TRUE(scope.empty());
}

TEST_F(CoroNet, ListenerCreationFailureReportsReason) {
  const coro::Listener listener = listen();
  const auto other = coro::Listener::create(*loop_, address(listener));
  EXPECT_EQ(other.error(), std::errc::address_in_use);
  EXPECT_EQ(coro::Listener::adopt(*loop_, -1).error(), std::errc::bad_file_descriptor);
}

// ---- connecting

TEST_F(CoroNet, ConnectTakesAddressListOrName) {
  const auto connect_all = [](Address to) -> Task<Result<int>> {
    int made = 0;
    const spate::Stream one = co_await coro::or_return(coro::connect(to, {.timeout = 1h}));
    made += one.is_open();
    std::vector<Address> all{Address::loopback_ipv4(1), to};
    const spate::Stream other = co_await coro::or_return(coro::connect(std::move(all)));
    made += other.is_open();
    const spate::Stream named = co_await coro::or_return(coro::connect("127.0.0.1", to.port()));
    made += named.is_open();
    co_return made;
  };
  const coro::Listener listener = listen();
  EXPECT_EQ(coro::run(*loop_, connect_all(address(listener))), 3);
}

TEST_F(CoroNet, RefusedConnectionIsReported) {
  const auto connect_to_nobody = []() -> Task<Result<void>> {
    co_await coro::or_return(coro::connect(Address::loopback_ipv4(1)));
    co_return Result<void>();
  };
  EXPECT_EQ(coro::run(*loop_, connect_to_nobody()).error(), std::errc::connection_refused);
}

TEST_F(CoroNet, CancelledConnectLeaksNoDescriptor) {
  const std::vector<int> before = open_fds();
  {
    coro::Scope scope(*loop_);
    const auto connect = [](Address to) -> Task<void> {
      co_await coro::connect(to);
      ADD_FAILURE() << "it went on";
    };
    const coro::Listener listener = listen();
    scope.spawn(connect(address(listener)));
    scope.cancel();
    turns();
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_F(CoroNet, NameIsResolved) {
  const auto look_up = [](std::string name) -> Task<Result<std::vector<Address>>> {
    co_return co_await coro::resolve(name, 80);
  };
  const auto found = coro::run(*loop_, look_up("192.0.2.1"));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, std::vector<Address>{must(Address::parse("192.0.2.1:80"))});
  EXPECT_EQ(coro::run(*loop_, look_up("a b")).error(), NameError::bad_name);
}

// ---- the user's own functions with callbacks

TEST_F(CoroNet, FailureToStartIsResult) {
  const auto asks = []() -> Task<Result<int>> {
    co_return co_await coro::CallbackAwaiter<Result<int>>::of(
        [](Loop&, auto) -> Result<std::monostate> {
          return std::unexpected(std::make_error_code(std::errc::io_error));
        });
  };
  EXPECT_EQ(coro::run(*loop_, asks()).error(), std::errc::io_error);
}

}  // namespace
}  // namespace spate::testing
