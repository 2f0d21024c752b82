// Move assignment takes the new contents before it destroys the old: the destructor of a captured
// object may then use the target and the source. No test runs the loop, which could end a handle.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/loop_function.h"
#include "spate/coro/generator.h"
#include "spate/coro/scope.h"
#include "spate/coro/task.h"
#include "spate/http/client.h"
#include "spate/http/inspector.h"
#include "spate/http/router.h"
#include "spate/http/server.h"
#include "spate/net/buffer.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/offload.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

// Held by a function; the deleter acts when the last function that has it is destroyed.
using Captured = std::shared_ptr<void>;

Captured acting(std::function<void()> act) {
  int there = 0;
  return {&there, [act = std::move(act)](void*) { act(); }};
}

// How a kind of handle is made, with functions that hold `captured`.
template <class Handle>
Handle make(Loop& loop, Captured captured);

template <>
Stream make(Loop& loop, Captured captured) {
  auto [near, far] = std::move(*Stream::memory_pair(loop));
  EXPECT_FALSE(near.start({.on_end = [captured, peer = std::move(far)] {}}));
  return std::move(near);
}

template <>
Listener make(Loop& loop, Captured captured) {
  return std::move(*Listener::create(loop, Address::loopback_ipv4(0),
                                     [captured](Stream, const Address&) {}));
}

template <>
Datagram make(Loop& loop, Captured captured) {
  Datagram datagram = std::move(*Datagram::create(loop, Address::loopback_ipv4(0)));
  EXPECT_FALSE(datagram.start({.on_writable = [captured] {}}));
  return datagram;
}

template <>
Client make(Loop& loop, Captured captured) {
  return std::move(
      *Client::create(loop, Address::loopback_ipv4(1), [captured](Result<Stream>) {}));
}

template <>
Connecting make(Loop& loop, Captured captured) {
  return connect(loop, "a.name.invalid", 1, [captured](Result<Stream>) {});
}

template <>
Resolving make(Loop& loop, Captured captured) {
  return resolve(loop, "a.name.invalid", 1, [captured](Result<std::vector<Address>>) {});
}

template <>
Relaying make(Loop& loop, Captured captured) {
  auto first = std::move(*Stream::socket_pair(loop));
  auto second = std::move(*Stream::socket_pair(loop));
  return relay(std::move(first.first), std::move(second.first),
               [captured, first = std::move(first.second), second = std::move(second.second)](
                   const RelayResult&) {});
}

template <>
Process make(Loop& loop, Captured captured) {
  ProcessOptions options{.file = "sleep", .arguments = {"1000"}};
  options.kill_when_destroyed = true;
  return std::move(*spawn(loop, options, [captured](const Child&) {}));
}

template <>
Buffer make(Loop& /*loop*/, Captured captured) {
  Buffer buffer;
  const auto release = [](void* context) { delete static_cast<Captured*>(context); };
  EXPECT_TRUE(
      buffer.append_reference(bytes_of("x"), release, new Captured(std::move(captured))));
  return buffer;
}

template <>
http::Server make(Loop& loop, Captured captured) {
  return std::move(*http::Server::create(loop, [captured](http::Exchange) {}));
}

template <>
http::Client make(Loop& loop, Captured captured) {
  http::ClientOptions options;
  options.open = [captured](std::string_view, std::uint16_t) -> Result<Stream> {
    return std::unexpected(std::make_error_code(std::errc::connection_refused));
  };
  return std::move(*http::Client::create(loop, std::move(options)));
}

template <>
http::Inspector make(Loop& loop, Captured captured) {
  http::Inspector inspector = std::move(*http::Inspector::create(loop));
  inspector.add("one", [captured](http::Readings&) {});
  return inspector;
}

// The function also holds the Client, which is then destroyed inside the cancellation.
template <>
http::Call make(Loop& loop, Captured captured) {
  auto client = std::make_shared<http::Client>(std::move(*http::Client::create(loop, {})));
  http::Client& used = *client;
  return used.fetch("http://a.name.invalid/",
                    [captured, client = std::move(client)](Result<http::Response>) {});
}

template <>
http::Router make(Loop& /*loop*/, Captured captured) {
  http::Router router;
  router.otherwise([captured](http::Exchange) {});
  return router;
}

// A Router that has a route.
struct Routes {
  http::Router router;
};
template <>
Routes make(Loop& /*loop*/, Captured captured) {
  Routes routes;
  routes.router.get("/one", [captured](http::Exchange) {});
  return routes;
}

coro::Task<void> task_with(Captured /*captured*/) { co_return; }
template <>
coro::Task<void> make(Loop& /*loop*/, Captured captured) {
  return task_with(std::move(captured));
}

coro::Generator<int> generator_with(Captured /*captured*/) { co_yield 1; }
template <>
coro::Generator<int> make(Loop& /*loop*/, Captured captured) {
  return generator_with(std::move(captured));
}

template <class Handle>
class MovedHandles : public ::testing::Test {
 protected:
  std::unique_ptr<Handle> made(std::function<void()> act) {
    return std::make_unique<Handle>(make<Handle>(*loop_, acting(std::move(act))));
  }
  Handle counted() { return make<Handle>(*loop_, acting([this] { ++destroyed_; })); }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::unique_ptr<Handle> target_;
  std::unique_ptr<Handle> source_;
  int acts_ = 0;
  int destroyed_ = 0;  // Only those made by counted().
};

using AllHandles =
    ::testing::Types<Stream, Listener, Datagram, Client, Connecting, Resolving, Relaying, Process,
                     Buffer, http::Server, http::Client, http::Inspector, http::Call, http::Router,
                     Routes, coro::Task<void>, coro::Generator<int>>;
TYPED_TEST_SUITE(MovedHandles, AllHandles);

TYPED_TEST(MovedHandles, AssignmentKeepsHandleThatOldCallbackAssigns) {
  this->target_ = this->made([this] {
    ++this->acts_;
    *this->target_ = this->counted();
  });
  this->source_ = std::make_unique<TypeParam>(this->counted());
  *this->target_ = std::move(*this->source_);
  EXPECT_EQ(this->acts_, 1);
  EXPECT_EQ(this->destroyed_, 1) << "the source's, which was replaced";
  this->target_.reset();
  EXPECT_EQ(this->destroyed_, 2);
}

TYPED_TEST(MovedHandles, AssignmentKeepsHandleThatOldCallbackAssignsToSource) {
  this->target_ = this->made([this] {
    ++this->acts_;
    *this->source_ = this->counted();
  });
  this->source_ = std::make_unique<TypeParam>(this->counted());
  *this->target_ = std::move(*this->source_);
  EXPECT_EQ(this->acts_, 1);
  EXPECT_EQ(this->destroyed_, 0);
  this->target_.reset();
  EXPECT_EQ(this->destroyed_, 1);
  this->source_.reset();
  EXPECT_EQ(this->destroyed_, 2);
}

TYPED_TEST(MovedHandles, GoWithOldOne) {
  this->target_ = this->made([this] {
    ++this->acts_;
    this->target_.reset();
    this->source_.reset();
  });
  this->source_ = std::make_unique<TypeParam>(this->counted());
  *this->target_ = std::move(*this->source_);
  EXPECT_EQ(this->acts_, 1);
  EXPECT_EQ(this->destroyed_, 1);
}

TYPED_TEST(MovedHandles, StayWhenTheyAreAssignedToThemselves) {
  this->target_ = std::make_unique<TypeParam>(this->counted());
  TypeParam& same = *this->target_;
  *this->target_ = std::move(same);
  EXPECT_EQ(this->destroyed_, 0);
  this->target_.reset();
  EXPECT_EQ(this->destroyed_, 1);
}

// ---- functions that replace others

class ReplacedFunctions : public ::testing::Test {
 protected:
  Captured counted() {
    return acting([this] { ++destroyed_; });
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  int destroyed_ = 0;
};

TEST_F(ReplacedFunctions, MaySetAnotherInTheirDestructor) {
  using Kept = LoopFunction<void()>;
  std::unique_ptr<Kept> kept;
  bool is_called = false;
  const auto set_again = [&] {
    kept->set([&is_called, captured = counted()] { is_called = true; });
  };
  kept = std::make_unique<Kept>(*loop_, [captured = acting(set_again)] {});
  kept->set([captured = counted()] {});
  EXPECT_EQ(destroyed_, 1) << "the one that was replaced last";
  (*kept)();
  EXPECT_TRUE(is_called);
  kept.reset();
  EXPECT_EQ(destroyed_, 2);
}

TEST_F(ReplacedFunctions, MayDestroyOwnerInTheirDestructor) {
  using Kept = LoopFunction<void()>;
  std::unique_ptr<Kept> kept;
  kept = std::make_unique<Kept>(*loop_, [captured = acting([&] { kept.reset(); })] {});
  kept->set([captured = counted()] {});
  EXPECT_EQ(kept, nullptr);
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(ReplacedFunctions, MaySetAnotherOfScopeInTheirDestructor) {
  coro::Scope scope(*loop_);
  const auto set_again = [&] { scope.on_error([captured = counted()](std::error_code) {}); };
  scope.on_error([captured = acting(set_again)](std::error_code) {});
  scope.on_error([captured = counted()](std::error_code) {});
  EXPECT_EQ(destroyed_, 1);
  scope.on_error({});
  EXPECT_EQ(destroyed_, 2);
}

TEST_F(ReplacedFunctions, MayDestroyScopeInTheirDestructor) {
  auto scope = std::make_unique<coro::Scope>(*loop_);
  scope->on_error([captured = acting([&] { scope.reset(); })](std::error_code) {});
  scope->on_error([captured = counted()](std::error_code) {});
  EXPECT_EQ(scope, nullptr);
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(ReplacedFunctions, MaySetAnotherOfRouterInTheirDestructor) {
  http::Router router;
  const auto set_again = [&] { router.otherwise([captured = counted()](http::Exchange) {}); };
  router.otherwise([captured = acting(set_again)](http::Exchange) {});
  router.otherwise([captured = counted()](http::Exchange) {});
  EXPECT_EQ(destroyed_, 1);
  router.otherwise({});
  EXPECT_EQ(destroyed_, 2);
}

}  // namespace
}  // namespace spate::testing
