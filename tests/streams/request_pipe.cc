// RequestPipe: each request has one result, in order; connections that end, deadlines, limits.
#include "spate/net/request_pipe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/server.h"
#include "streams/harness.h"
#include "support/own_loopback.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Lines; one that begins with '>' is pushed.
struct Lines : Delimiter {
  bool is_push(Bytes message) const { return text_of(message).starts_with('>'); }
};
using LinePipe = RequestPipe<Lines>;

// A server whose reaction to a line is a function of the test. The default echoes.
class LineServer {
 public:
  using Answer = std::function<void(Session&, std::string_view line)>;

  struct Talker : Session {
    explicit Talker(LineServer& owner) : server(owner) {}
    void on_open() override { server.sessions.push_back(this); }
    std::size_t on_data(Bytes bytes) override {
      return split(bytes, Delimiter{},
                   [this](Bytes line) {
                     server.lines.emplace_back(text_of(line));
                     server.answer(*this, text_of(line));
                     return stream().is_open();
                   })
          .used;
    }
    ~Talker() override { std::erase(server.sessions, this); }
    LineServer& server;
  };

  explicit LineServer(Loop& loop) : loop_(loop) { start(own_address(0)); }
  void start(const Address& at) {
    server_ = must(serve<Talker>(loop_, at, std::ref(*this)));
    address = server_.address();
  }
  void stop() { server_ = {}; }
  static void echo(Session& session, std::string_view line) {
    session.stream().write("=" + std::string(line) + "\n");
  }

  Address address;
  Answer answer = &echo;
  std::vector<std::string> lines;
  std::vector<Talker*> sessions;

 private:
  Loop& loop_;
  Server<Talker> server_;
};

class RequestPipes : public ::testing::Test {
 protected:
  LinePipe make(PipeHandlers handlers = {}, PipeOptions options = {}) {
    options.client.first_delay = 1ms;
    options.client.max_delay = 5ms;
    return must(LinePipe::create(*loop_, server_.address, Lines{}, std::move(handlers), options));
  }
  OnPipeResponse note(std::string name) {
    return [this, name = std::move(name)](Result<Bytes> result) {
      results_.push_back(name + (result ? std::string(text_of(*result))
                                        : "!" + std::string(result.error().message())));
    };
  }
  static std::string failed(std::string_view name, std::error_code error) {
    return std::string(name) + "!" + error.message();
  }
  static std::string failed(std::string_view name, std::errc error) {
    return failed(name, std::error_code(static_cast<int>(error), std::system_category()));
  }
  void ask(LinePipe& pipe, const std::string& name, const PipeRequestOptions& options = {}) {
    EXPECT_EQ(pipe.request(name + "\n", note(name), options), std::error_code());
  }
  void wait_for(std::size_t count) {
    run_until(*loop_, [&] { return results_.size() >= count; });
  }
  void wait_until_connected(const LinePipe& pipe) {
    run_until(*loop_, [&] { return pipe.is_connected(); });
  }
  void wait_for_lines(std::size_t count) {
    run_until(*loop_, [&] { return server_.lines.size() >= count; });
  }
  using Texts = std::vector<std::string>;

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  LineServer server_{*loop_};
  Texts results_;
};

TEST_F(RequestPipes, ResponsesComeInOrder) {
  LinePipe pipe = make();
  ask(pipe, "a");  // Waits for the connection.
  ask(pipe, "b");
  EXPECT_EQ(pipe.pending(), 2u);
  EXPECT_EQ(pipe.queued(), 4u);
  wait_for(2);
  ask(pipe, "c");
  ask(pipe, "d");
  wait_for(4);
  EXPECT_EQ(results_, (Texts{"a=a", "b=b", "c=c", "d=d"}));
  EXPECT_EQ(pipe.pending(), 0u);
  EXPECT_EQ(pipe.queued(), 0u);
  EXPECT_TRUE(pipe.is_connected());
}

TEST_F(RequestPipes, ResponseInPiecesIsOneResponse) {
  server_.answer = [&](Session& session, std::string_view line) {
    const std::string response = pattern(300'000) + std::string(line) + "\n";
    session.stream().write(response);
  };
  Lines long_lines;
  long_lines.max = 1'000'000;
  auto pipe = must(LinePipe::create(*loop_, server_.address, long_lines));
  ASSERT_FALSE(pipe.request("x\n", note("")));
  ASSERT_FALSE(pipe.request("y\n", note("")));
  wait_for(2);
  EXPECT_EQ(results_, (Texts{pattern(300'000) + "x", pattern(300'000) + "y"}));
}

TEST_F(RequestPipes, SetupRequestsComeFirstAndOthersWaitForThem) {
  LinePipe pipe;
  pipe = make({.on_connected = [&] {
    EXPECT_FALSE(pipe.request("login\n", [&](Result<Bytes> response) {
      results_.emplace_back("login");
      EXPECT_TRUE(response);
      EXPECT_FALSE(pipe.is_connected());
      ask(pipe, "select");
    }));
  }});
  ask(pipe, "a");
  wait_for(3);
  EXPECT_EQ(results_, (Texts{"login", "select=select", "a=a"}));
  EXPECT_EQ(server_.lines, (Texts{"login", "select", "a"}));
}

TEST_F(RequestPipes, SetupRunsForEachConnection) {
  int connections = 0;
  LinePipe pipe;
  pipe = make({.on_connected = [&] { ask(pipe, "hello" + std::to_string(++connections)); }});
  wait_until_connected(pipe);
  pipe.reset();
  EXPECT_FALSE(pipe.is_connected());
  wait_until_connected(pipe);
  EXPECT_EQ(results_, (Texts{"hello1=hello1", "hello2=hello2"}));
}

TEST_F(RequestPipes, EmptyRequestReceivesGreeting) {
  server_.answer = [](Session& session, std::string_view line) {
    if (line == "a") return LineServer::echo(session, line);
  };
  LinePipe pipe;
  pipe = make({.on_connected = [&] { EXPECT_FALSE(pipe.request("", note("greeting "))); }});
  ask(pipe, "a");
  run_until(*loop_, [&] { return !server_.sessions.empty(); });
  server_.sessions.front()->stream().write("220 ready\n");
  wait_for(2);
  EXPECT_EQ(results_, (Texts{"greeting 220 ready", "a=a"}));
}

TEST_F(RequestPipes, PushedMessageIsNoResponse) {
  Texts pushed;
  server_.answer = [](Session& session, std::string_view line) {
    session.stream().write(">one\n=" + std::string(line) + "\n>two\n");
  };
  LinePipe pipe = make({.on_push = [&](Bytes bytes) { pushed.emplace_back(text_of(bytes)); }});
  ask(pipe, "a");
  ask(pipe, "b");
  run_until(*loop_, [&] { return pushed.size() == 4; });
  EXPECT_EQ(results_, (Texts{"a=a", "b=b"}));
  EXPECT_EQ(pushed, (Texts{">one", ">two", ">one", ">two"}));
}

TEST_F(RequestPipes, SentBytesHaveNoResponse) {
  server_.answer = [](Session& session, std::string_view line) {
    if (line != "quiet") LineServer::echo(session, line);
  };
  LinePipe pipe = make();
  EXPECT_EQ(pipe.send("quiet\n"), std::errc::not_connected);
  wait_until_connected(pipe);
  EXPECT_FALSE(pipe.send("quiet\n"));
  ask(pipe, "a");
  wait_for(1);
  EXPECT_EQ(server_.lines, (Texts{"quiet", "a"}));
  EXPECT_EQ(results_, (Texts{"a=a"}));
}

// ---- connections that end

TEST_F(RequestPipes, SentRequestsFailAndLaterOnesAreSent) {
  server_.answer = [&](Session& session, std::string_view line) {
    if (line == "bad") return session.abort();
    LineServer::echo(session, line);
  };
  std::error_code reason;
  LinePipe pipe = make({.on_disconnected = [&](std::error_code error) {
    reason = error;
    results_.emplace_back("disconnected");
    ask(pipe, "later");
  }});
  ask(pipe, "good");
  wait_for(1);
  ask(pipe, "bad");
  ask(pipe, "lost");
  wait_for(5);
  EXPECT_EQ(results_,
            (Texts{"good=good", "disconnected", failed("bad", std::errc::connection_reset),
                   failed("lost", std::errc::connection_reset), "later=later"}));
  EXPECT_EQ(reason, std::errc::connection_reset);
}

TEST_F(RequestPipes, RepeatedRequestIsSentAgainBeforeWaitingOnes) {
  int resets = 0;
  server_.answer = [&](Session& session, std::string_view line) {
    if (resets++ == 0) return session.abort();
    LineServer::echo(session, line);
  };
  LinePipe pipe;
  pipe = make({.on_disconnected = [&](std::error_code) { ask(pipe, "waits"); }});
  ask(pipe, "again", {.repeats = 1});
  ask(pipe, "once");
  wait_for(3);
  EXPECT_EQ(results_,
            (Texts{failed("once", std::errc::connection_reset), "again=again", "waits=waits"}));
}

TEST_F(RequestPipes, RepeatsAreLimited) {
  server_.answer = [](Session& session, std::string_view) { session.abort(); };
  LinePipe pipe = make();
  ask(pipe, "poison", {.repeats = 2});
  wait_for(1);
  EXPECT_EQ(results_, (Texts{failed("poison", std::errc::connection_reset)}));
  EXPECT_EQ(server_.lines.size(), 3u);
}

TEST_F(RequestPipes, RequestsWaitUntilServerIsBack) {
  LinePipe pipe = make();
  wait_until_connected(pipe);
  server_.stop();
  run_until(*loop_, [&] { return !pipe.is_connected(); });
  ask(pipe, "a");
  run_until(*loop_, [&] { return pipe.last_error() == std::errc::connection_refused; });
  server_.start(server_.address);
  wait_for(1);
  EXPECT_EQ(results_, (Texts{"a=a"}));
  EXPECT_FALSE(pipe.last_error());
}

TEST_F(RequestPipes, WaitingRequestsFailWhenAttemptsAreGivenUp) {
  const Address address = server_.address;
  server_.stop();
  LinePipe pipe = make({}, {.client = {.max_failures = 2}});
  ask(pipe, "a");
  wait_for(1);
  EXPECT_EQ(results_, (Texts{failed("a", std::errc::connection_refused)}));
  EXPECT_EQ(pipe.state(), Client::State::idle);
  EXPECT_EQ(pipe.request("b\n", note("b")), std::errc::not_connected);
  server_.start(address);
  pipe.connect();
  ask(pipe, "c");
  wait_for(2);
  EXPECT_EQ(results_[1], "c=c");
}

TEST_F(RequestPipes, RequestIsRefusedWithoutConnectionIfItMustNotWait) {
  LinePipe pipe = make({}, {.wait = false});
  EXPECT_EQ(pipe.request("a\n", note("a")), std::errc::not_connected);
  wait_until_connected(pipe);
  ask(pipe, "b");
  wait_for(1);
  EXPECT_EQ(results_, (Texts{"b=b"}));
}

TEST_F(RequestPipes, MalformedResponseFailsItsRequestAndResets) {
  server_.answer = [&](Session& session, std::string_view line) {
    if (line == "bad") return void(session.stream().write(std::string(100, 'x')));
    LineServer::echo(session, line);
  };
  Lines short_lines;
  short_lines.max = 10;
  auto pipe = must(
      LinePipe::create(*loop_, server_.address, short_lines, {}, {.client = {.first_delay = 1ms}}));
  for (const std::string name : {"a", "bad", "c"}) ask(pipe, name);
  wait_for(3);
  EXPECT_EQ(results_, (Texts{"a=a", failed("bad", std::errc::protocol_error),
                             failed("c", std::errc::connection_reset)}));
  ask(pipe, "d");
  wait_for(4);
  EXPECT_EQ(results_[3], "d=d");
}

TEST_F(RequestPipes, ResponseWithoutRequestResets) {
  std::error_code reason;
  LinePipe pipe = make({.on_disconnected = [&](std::error_code error) { reason = error; }});
  wait_until_connected(pipe);
  run_until(*loop_, [&] { return !server_.sessions.empty(); });
  server_.sessions.front()->stream().write("surprise\n");
  run_until(*loop_, [&] { return static_cast<bool>(reason); });
  EXPECT_EQ(reason, std::errc::protocol_error);
}

// ---- deadlines

TEST_F(RequestPipes, SilentConnectionIsResetAtDeadline) {
  server_.answer = [](Session&, std::string_view) {};
  LinePipe pipe = make();
  wait_until_connected(pipe);  // Before that, an expired deadline would not reset the connection.
  ask(pipe, "a", {.deadline = 20ms});
  ask(pipe, "b");
  wait_for(2);
  EXPECT_EQ(results_,
            (Texts{failed("a", Error::deadline), failed("b", std::errc::connection_reset)}));
  EXPECT_EQ(pipe.last_error(), Error::deadline);
  server_.answer = &LineServer::echo;
  ask(pipe, "c");
  wait_for(3);
  EXPECT_EQ(results_[2], "c=c");
}

// Half of the response has arrived when its deadline expires.
TEST_F(RequestPipes, LateResponseIsSkipped) {
  server_.answer = [](Session& session, std::string_view line) {
    if (line == "first") session.stream().write("=first\n=la");
    if (line == "next") session.stream().write("te\n=next\n");
  };
  LinePipe pipe = make();
  EXPECT_FALSE(
      pipe.request("first\n", [&](Result<Bytes>) { ask(pipe, "late", {.deadline = -1ns}); }));
  wait_for(1);
  EXPECT_EQ(results_, (Texts{failed("late", Error::deadline)}));
  EXPECT_EQ(pipe.pending(), 0u);
  ask(pipe, "next", {.deadline = 0ns});
  wait_for(2);
  EXPECT_EQ(results_[1], "next=next");
  EXPECT_EQ(server_.sessions.size(), 1u);
}

TEST_F(RequestPipes, WaitingRequestIsNotSentAfterItsDeadline) {
  const Address address = server_.address;
  server_.stop();
  LinePipe pipe = make();
  ask(pipe, "late", {.deadline = 5ms});
  ask(pipe, "patient", {.deadline = 0ns});
  wait_for(1);
  EXPECT_EQ(results_, (Texts{failed("late", Error::deadline)}));
  EXPECT_EQ(pipe.queued(), 8u);
  server_.start(address);
  wait_for(2);
  EXPECT_EQ(server_.lines, (Texts{"patient"}));
}

TEST_F(RequestPipes, UnansweredSetupResets) {
  int connections = 0;
  server_.answer = [&](Session& session, std::string_view line) {
    if (connections > 1) LineServer::echo(session, line);
  };
  LinePipe pipe;
  pipe = make(
      {.on_connected = [&] { ask(pipe, "login", {.deadline = ++connections == 1 ? 20ms : 0ms}); }});
  ask(pipe, "a", {.deadline = 0ns});
  wait_for(3);
  EXPECT_EQ(results_, (Texts{failed("login", Error::deadline), "login=login", "a=a"}));
}

// ---- limits

TEST_F(RequestPipes, RequestBeyondLimitsIsRefused) {
  LinePipe pipe = make({}, {.max_requests = 2, .limits = {.low = 2, .high = 4, .max = 10}});
  EXPECT_EQ(pipe.request("12345678901", note("x")), Error::queue_full);
  ask(pipe, "12345678");
  EXPECT_TRUE(pipe.is_full());
  EXPECT_EQ(pipe.request("1\n", note("x")), Error::queue_full);
  EXPECT_FALSE(pipe.request("\n", note("y")));
  EXPECT_EQ(pipe.request("", note("x")), Error::queue_full);  // The third request.
}

TEST_F(RequestPipes, OnDrainedFollowsFullness) {
  int drained = 0;
  LinePipe pipe = make({.on_drained = [&] { ++drained; }}, {.max_requests = 4});
  for (const std::string name : {"a", "b", "c", "d"}) ask(pipe, name);
  EXPECT_TRUE(pipe.is_full());
  EXPECT_EQ(pipe.request("e\n", note("e")), Error::queue_full);
  EXPECT_EQ(drained, 0);
  run_until(*loop_, [&] { return drained == 1; });
  EXPECT_FALSE(pipe.is_full());
  wait_for(4);
  ask(pipe, "f");
  wait_for(5);
  EXPECT_EQ(drained, 1);
}

// ---- ending

TEST_F(RequestPipes, CloseFailsAllRequests) {
  server_.answer = [](Session&, std::string_view) {};
  LinePipe pipe = make();
  wait_until_connected(pipe);
  ask(pipe, "a");
  pipe.close();
  EXPECT_TRUE(results_.empty());
  EXPECT_EQ(pipe.request("b\n", note("b")), std::errc::broken_pipe);
  EXPECT_EQ(pipe.send("b\n"), std::errc::broken_pipe);
  wait_for(1);
  EXPECT_EQ(results_, (Texts{failed("a", std::errc::operation_canceled)}));
  wait_for_lines(1);  // It was written.
}

TEST_F(RequestPipes, DrainWaitsForLastResponse) {
  LinePipe pipe = make();
  ask(pipe, "a");
  ask(pipe, "b");
  bool is_done = false;
  pipe.drain([&] { is_done = true; });
  EXPECT_EQ(pipe.request("c\n", note("c")), std::errc::broken_pipe);
  run_until(*loop_, [&] { return is_done; });
  EXPECT_EQ(results_, (Texts{"a=a", "b=b"}));
  run_until(*loop_, [&] { return pipe.state() == Client::State::idle; });
}

TEST_F(RequestPipes, DrainOfIdlePipeEndsAtOnce) {
  LinePipe pipe = make();
  bool is_done = false;
  pipe.drain([&] { is_done = true; });
  EXPECT_FALSE(is_done);
  run_until(*loop_, [&] { return is_done; });
}

TEST_F(RequestPipes, CancelledRequestHasNoResult) {
  LinePipe pipe = make();
  PipeRequest waiting;
  ask(pipe, "waiting", {.handle = &waiting});
  ask(pipe, "a");
  EXPECT_TRUE(waiting.is_pending());
  waiting.cancel();
  EXPECT_FALSE(waiting.is_pending());
  wait_for(1);
  PipeRequest sent;
  ask(pipe, "sent", {.handle = &sent});
  PipeRequest moved = std::move(sent);
  EXPECT_FALSE(sent.is_pending());
  EXPECT_TRUE(moved.is_pending());
  moved = PipeRequest();
  EXPECT_EQ(pipe.pending(), 0u);
  ask(pipe, "b", {.handle = &sent});
  wait_for(2);
  EXPECT_FALSE(sent.is_pending());
  EXPECT_EQ(results_, (Texts{"a=a", "b=b"}));
  EXPECT_EQ(server_.lines, (Texts{"a", "sent", "b"}));
}

TEST_F(RequestPipes, DestroyedPipeDropsItsCallbacks) {
  const auto token = std::make_shared<int>();
  PipeRequest handle;
  {
    LinePipe pipe = make();
    wait_until_connected(pipe);
    EXPECT_FALSE(
        pipe.request("a\n", [token](Result<Bytes>) { ADD_FAILURE(); }, {.handle = &handle}));
  }
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_FALSE(handle.is_pending());
  wait_for_lines(1);
}

TEST_F(RequestPipes, LoopMayEndFirst) {
  const auto token = std::make_shared<int>();
  auto loop = must(Loop::create());
  LinePipe pipe = must(LinePipe::create(*loop, Address::loopback_ipv4(1)));
  PipeRequest handle;
  EXPECT_FALSE(pipe.request("a\n", [token](Result<Bytes>) { ADD_FAILURE(); }, {.handle = &handle}));
  loop.reset();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(pipe.request("b\n", note("b")), std::errc::broken_pipe);
  EXPECT_EQ(pipe.pending(), 0u);
}

TEST_F(RequestPipes, EmptyPipeRefuses) {
  LinePipe pipe;
  EXPECT_EQ(pipe.request("b\n", note("b")), std::errc::broken_pipe);
  pipe.drain();
  pipe.close();
  EXPECT_EQ(pipe.state(), Client::State::idle);
}

// Each callback destroys the pipe, which holds further requests.
TEST_F(RequestPipes, PipeMayBeDestroyedInEachCallback) {
  server_.answer = [](Session& session, std::string_view line) {
    session.stream().write(">push\n");
    if (line == "bad") return session.abort();
    LineServer::echo(session, line);
  };
  for (int where = 0; where < 6; ++where) {
    std::optional<LinePipe> pipe;
    int calls = 0;
    const auto end = [&](int here) {
      if (here != where) return;
      ++calls;
      pipe.reset();
    };
    const auto failing = [&end](Result<Bytes> result) { end(result ? 4 : 3); };
    pipe.emplace(make({.on_connected =
                           [&] {
                             EXPECT_FALSE(pipe->request("login\n", [&](Result<Bytes>) { end(5); }));
                             end(0);
                           },
                       .on_push = [&](Bytes) { end(1); },
                       .on_disconnected = [&](std::error_code) { end(2); }}));
    for (const std::string name : {"a\n", where == 4 ? "b\n" : "bad\n", "c\n"})
      EXPECT_FALSE(pipe->request(name, failing));
    run_until(*loop_, [&] { return !pipe; });
    EXPECT_EQ(calls, 1) << where;
    run_turns(*loop_, 3);
  }
}

TEST_F(RequestPipes, PipeMayBeDestroyedByDroppedCallback) {
  server_.answer = [](Session&, std::string_view) {};
  auto pipe = std::make_shared<LinePipe>(make());
  wait_until_connected(*pipe);
  LinePipe& raw = *pipe;
  EXPECT_FALSE(raw.request("a\n", [pipe = std::move(pipe)](Result<Bytes>) {}));
  raw.close();  // The callback owns the pipe.
  run_turns(*loop_, 5);
}

TEST_F(RequestPipes, CallbackMayRunLoop) {
  server_.answer = [](Session& session, std::string_view) { session.abort(); };
  LinePipe pipe = make();
  int failures = 0;
  bool was_nested = false;
  const auto on_failure = [&](Result<Bytes> result) {
    EXPECT_FALSE(result);
    if (++failures > 1) return;
    run_until(*loop_, [&] { return failures == 3; });
    was_nested = true;
  };
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pipe.request("a\n", on_failure));
  run_until(*loop_, [&] { return was_nested; });
}

TEST_F(RequestPipes, EachAllocationMayFail) {
  for (unsigned nth = 1; nth < 40; ++nth) {
    results_.clear();
    std::size_t accepted = 0;
    LinePipe pipe = make();
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
      const FaultScope scope(plan);
      for (const std::string name : {"a", "b", "c"})
        accepted += pipe.request(name + "\n", note(name), {.repeats = 3}) ? 0 : 1;
      run_turns(*loop_, 5);
    }
    wait_for(accepted);
    EXPECT_EQ(results_.size(), accepted);
  }
}

}  // namespace
}  // namespace spate::testing
