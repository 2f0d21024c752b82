// Coroutines that wait for the responses of a RequestPipe.
#include "spate/coro/request_pipe.h"

#include <gtest/gtest.h>

#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/net/server.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using coro::Task;

struct Echoing : Session {
  std::size_t on_data(Bytes bytes) override {
    return split(bytes, Delimiter{},
                 [this](Bytes line) {
                   if (text_of(line) != "silence")
                     stream().write(std::string(text_of(line)) + "\n");
                 })
        .used;
  }
};

class CoroRequestPipe : public ::testing::Test {
 protected:
  std::unique_ptr<Loop> loop_ = must(Loop::create());
  Server<Echoing> server_ = must(serve<Echoing>(*loop_, Address::loopback_ipv4(0)));
  RequestPipe<Delimiter> pipe_ = must(RequestPipe<Delimiter>::create(*loop_, server_.address()));
};

Task<std::string> ask_twice(AnyRequestPipe* pipe) {
  const Result<std::string> first = co_await coro::request(*pipe, "one\n");
  const Result<std::string> second = co_await coro::request(*pipe, "two\n");
  co_return first.value_or("?") + second.value_or("?");
}

TEST_F(CoroRequestPipe, WaitsForResponses) {
  EXPECT_EQ(coro::run(*loop_, ask_twice(&pipe_)), "onetwo");
}

Task<std::error_code> ask_closed(AnyRequestPipe* pipe) {
  pipe->close();
  const Result<std::string> response = co_await coro::request(*pipe, "one\n");
  co_return response ? std::error_code() : response.error();
}

TEST_F(CoroRequestPipe, ReturnsErrorOfRequest) {
  EXPECT_EQ(coro::run(*loop_, ask_closed(&pipe_)), std::errc::broken_pipe);
}

Task<void> ask_silence(AnyRequestPipe* pipe) { co_await coro::request(*pipe, "silence\n"); }

TEST_F(CoroRequestPipe, DestroyedWaitCancelsItsRequest) {
  {
    coro::Scope scope(*loop_);
    scope.spawn(ask_silence(&pipe_));
    EXPECT_EQ(pipe_.pending(), 1u);
  }
  EXPECT_EQ(pipe_.pending(), 0u);
}

}  // namespace
}  // namespace spate::testing
