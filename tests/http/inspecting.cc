// The Inspector: its page, the report of each loop, and its end.
#include "spate/http/inspector.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "http/inspecting_harness.h"
#include "spate/active.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/net/listener.h"
#include "spate/timer.h"
#include "support/own_loopback.h"
#include "support/tls_pair.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Inspector;
using http::InspectorOptions;
using http::Readings;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class Inspecting : public InspectingTest {};

// ---- paths, methods, fields

TEST_F(Inspecting, PageHasNoExternalResources) {
  const std::string answer = talk(ask_for("/"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
  const std::string page = body_of(answer);
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  for (const char* outside : {" src=", "<link", "@import", "url(", "https://", "@style@"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST_F(Inspecting, ResponsesForbidCachingAndFraming) {
  for (const char* path : {"/", "/state.json", "/metrics"}) {
    const std::string answer = talk(ask_for(path));
    EXPECT_THAT(answer, HasSubstr("\r\nCache-Control: no-store\r\n")) << path;
    EXPECT_THAT(answer, HasSubstr("\r\nX-Frame-Options: DENY\r\n")) << path;
    EXPECT_THAT(answer, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n")) << path;
    EXPECT_THAT(answer, HasSubstr("\r\nCross-Origin-Resource-Policy: same-origin\r\n")) << path;
    EXPECT_THAT(answer, HasSubstr("\r\nContent-Security-Policy: default-src 'none'")) << path;
  }
}

TEST_F(Inspecting, LastPathSegmentSelectsResource) {
  EXPECT_EQ(get("/below/there/"), get("/"));
  EXPECT_THAT(talk(ask_for("/below/metrics?x=/y")), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(talk(ask_for("/below")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(talk(ask_for("/state.json/x")), StartsWith("HTTP/1.1 404 "));
}

TEST_F(Inspecting, MethodsOtherThanGetAndHeadAreRejected) {
  for (const char* path : {"/", "/state.json", "/metrics", "/events"}) {
    const std::string refused = talk(ask_for(path, "POST"));
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 405 ")) << path;
    EXPECT_THAT(refused, HasSubstr("\r\nAllow: GET, HEAD\r\n")) << path;
    const std::string head = talk(ask_for(path, "HEAD"));
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n")) << path;
    EXPECT_EQ(body_of(head), "") << path;
  }
  EXPECT_EQ(inspector_->viewers(), 0u);
}

TEST_F(Inspecting, OptionsAreValidated) {
  const auto error_of = [&](const InspectorOptions& options) {
    const auto made = Inspector::create(loop_, options);
    return made ? std::error_code() : made.error();
  };
  EXPECT_EQ(error_of({.period = 0ns}), std::errc::invalid_argument);
  EXPECT_EQ(error_of({.period = -1ns}), std::errc::invalid_argument);
  EXPECT_EQ(error_of({.response_timeout = -1ns}), std::errc::invalid_argument);
  EXPECT_FALSE(error_of({.period = 1ns, .response_timeout = 0ns}));
}

// ---- the report of each loop

TEST_F(Inspecting, EachLoopReportsItsActivity) {
  inspector_->add("main", loop_);
  const Json before = loop_named(state(), "main");
  EXPECT_EQ(before["status"].text, "responsive");
  EXPECT_EQ(before["source"].text, "main");
  EXPECT_EQ(before["backend"].text, loop_.backend_info().name);
  EXPECT_EQ(before["longest_callback"].number, 0) << "nobody measures";
  Timer timer(loop_, [] {});
  EXPECT_TRUE(timer.start(1h));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loop_.post([] {}));
  turns();
  const Json after = loop_named(state(), "main");
  EXPECT_EQ(after["timers"].number, before["timers"].number + 1);
  EXPECT_EQ(after["posts"].number, before["posts"].number + 3);
  EXPECT_GT(after["turns"].number, before["turns"].number);
}

TEST_F(Inspecting, OtherLoopRespondsAsynchronously) {
  inspector_->add("other", *other_);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  EXPECT_EQ(client->received, "");
  run_other();
  turns();
  EXPECT_EQ(loop_named(parse(body_of(client->received)), "other")["status"].text, "responsive");
}

TEST_F(Inspecting, StreamsAreCountedByState) {
  inspector_->add("other", *other_);
  auto [left, right] = must(Stream::socket_pair(*other_));
  auto [near, far] = must(Stream::memory_pair(*other_));
  EXPECT_FALSE(left.start(StreamCallbacks(), {.half_open = true}));
  EXPECT_FALSE(right.start(StreamCallbacks(), {.half_open = true}));
  EXPECT_TRUE(near.write("hello"));
  near.pause();
  left.end();
  run_other();
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  run_other();
  turns();
  const Json streams = loop_named(parse(body_of(client->received)), "other")["streams"];
  EXPECT_EQ(streams["count"].number, 4);
  EXPECT_EQ(streams["by_state"]["open"].number, 2);
  EXPECT_EQ(streams["by_state"]["ended"].number, 1);
  EXPECT_EQ(streams["by_state"]["peer ended"].number, 1);
  EXPECT_EQ(streams["paused"].number, 1);
  ASSERT_EQ(streams["listed"].items.size(), 4u);
  EXPECT_EQ(streams["listed"][0]["owned"].kind, Json::Kind::truth);
}

TEST_F(Inspecting, TcpStreamsHaveAddressesAndByteCounts) {
  inspector_->add("main", loop_);
  Stream accepted;
  auto listener = must(Listener::create(
      loop_, own_address(0), [&](Stream stream, const Address&) { accepted = std::move(stream); }));
  Stream stream = must(connected(listener.address()));
  std::string received;
  StreamCallbacks callbacks;
  callbacks.on_data = [&](Bytes bytes) { return received += text_of(bytes), bytes.size(); };
  EXPECT_FALSE(stream.start(std::move(callbacks)));
  while (!accepted.is_open()) turns();
  EXPECT_TRUE(accepted.write("hello"));
  while (received.empty()) turns();
  pass(10s);
  const Json streams = loop_named(state(), "main")["streams"];
  const auto shown = std::ranges::find_if(streams["listed"].items, [&](const Json& each) {
    return each["peer"].text == listener.address().to_string();
  });
  ASSERT_NE(shown, streams["listed"].items.end());
  EXPECT_EQ((*shown)["local"].text, stream.local_address().to_string());
  EXPECT_EQ((*shown)["fd"].number, stream.fd());
  EXPECT_EQ((*shown)["received"].number, 5);
  EXPECT_EQ((*shown)["tls"].text, "");
  EXPECT_GE((*shown)["age"].number, 8);
  EXPECT_TRUE(shown->has("idle"));
}

TEST_F(Inspecting, TlsVersionAndCipherAreShown) {
  const auto real = must(Loop::create());
  Handshake shaken = shake_hands(*real, must(Stream::memory_pair(*real)), test_client_context(),
                                 test_server_context());
  ASSERT_TRUE(shaken.client && shaken.server);
  inspector_->add("real", *real);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  real->run(Run::no_wait);
  turns();
  const Json streams = loop_named(parse(body_of(client->received)), "real")["streams"];
  ASSERT_EQ(streams["listed"].items.size(), 2u);
  for (const Json& stream : streams["listed"].items)
    EXPECT_THAT(stream["tls"].text, StartsWith("TLSv1.3 TLS_"));
  inspector_->remove("real");
}

TEST_F(Inspecting, LongestQueuesAreListed) {
  inspect({.max_streams = 2});
  inspector_->add("main", loop_);
  std::vector<std::pair<Stream, Stream>> pairs;
  for (const std::size_t size : {10u, 300'000u, 20u, 200'000u}) {
    pairs.push_back(must(Stream::memory_pair(loop_)));
    EXPECT_TRUE(pairs.back().first.write(std::string(size, 'x')));
  }
  turns();
  const Json streams = loop_named(state(), "main")["streams"];
  EXPECT_GE(streams["count"].number, 8);
  ASSERT_EQ(streams["listed"].items.size(), 2u);
  EXPECT_EQ(streams["listed"][0]["queued"].number, pairs[1].first.queued());
  EXPECT_EQ(streams["listed"][1]["queued"].number, pairs[3].first.queued());
  EXPECT_GT(pairs[3].first.queued(), 0u);
}

TEST_F(Inspecting, StreamsAreNotListedIfLimitIsZero) {
  inspect({.max_streams = 0});
  inspector_->add("main", loop_);
  const Json streams = loop_named(state(), "main")["streams"];
  EXPECT_GT(streams["count"].number, 0);
  EXPECT_TRUE(streams["listed"].items.empty());
}

// ---- loops that do not answer

TEST_F(Inspecting, UnresponsiveLoopIsShownAsBlocked) {
  inspector_->add("main", loop_);
  inspector_->add("other", *other_);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  pass(999ms);
  EXPECT_EQ(client->received, "");
  pass(1ms);
  const Json all = parse(body_of(client->received));
  EXPECT_EQ(loop_named(all, "main")["status"].text, "responsive");
  const Json other = loop_named(all, "other");
  EXPECT_EQ(other["status"].text, "blocked");
  EXPECT_EQ(other["silent"].number, 1);
  EXPECT_FALSE(other.has("running")) << "nothing was measured";
  EXPECT_FALSE(other.has("turns")) << "it has never answered";
}

TEST_F(Inspecting, BlockedLoopIsNeitherQueriedAgainNorAwaited) {
  inspector_->add("other", *other_);
  const auto first = connect();
  first->send(ask_for("/state.json"));
  turns();
  pass(1s);
  pass(2s);
  EXPECT_EQ(loop_named(state(), "other")["silent"].number, 3) << "told at once";
  const std::uint64_t before = other_->metrics().posts;
  run_other();
  EXPECT_EQ(other_->metrics().posts, before + 1);
  turns();
  const auto later = connect();
  later->send(ask_for("/state.json"));
  turns();
  run_other();
  turns();
  EXPECT_EQ(loop_named(parse(body_of(later->received)), "other")["status"].text, "responsive");
}

TEST_F(Inspecting, BlockingCallbackIsNamed) {
  inspector_->add("other", *other_);
  const auto viewer = watch();
  run_other();
  turns();
  EXPECT_TRUE(other_->is_measuring_callbacks());
  Json told;
  const auto block = [&] {
    pass(1s);
    pass(1s);
    told = loop_named(state(), "other");
  };
  Timer timer(*other_, [&block] { block(); });
  EXPECT_TRUE(timer.start(0ns));
  run_other();
  EXPECT_EQ(told["status"].text, "blocked");
  EXPECT_EQ(told["running"]["kind"].text, "Timer");
  EXPECT_EQ(told["running"]["seconds"].number, 2);
  EXPECT_TRUE(told.has("turns")) << "what it told last";
}

TEST_F(Inspecting, StreamOfBlockingHandlerIsNamed) {
  inspector_->add("other", *other_);
  auto [left, right] = must(Stream::socket_pair(*other_));
  Json told;
  StreamCallbacks callbacks;
  callbacks.on_data = [&](Bytes bytes) {
    pass(1s);
    pass(1s);
    told = loop_named(state(), "other");
    return bytes.size();
  };
  EXPECT_FALSE(right.start(std::move(callbacks)));
  const auto viewer = watch();
  run_other();
  turns();
  EXPECT_TRUE(left.write("x"));
  run_other();
  EXPECT_EQ(told["running"]["kind"].text, "Io");
  EXPECT_TRUE(told["running"].has("peer"));
}

TEST_F(Inspecting, RemovedLoopIsNotAwaited) {
  inspector_->add("other", *other_);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  EXPECT_EQ(client->received, "");
  inspector_->remove("other");
  inspector_->remove("nothing");
  turns();
  EXPECT_TRUE(parse(body_of(client->received))["loops"].items.empty());
  inspector_->add("other", *other_);  // The name is free again.
  inspector_->remove("other");
  other_.reset();
  turns();
}

TEST_F(Inspecting, ResponseOfRemovedLoopIsIgnored) {
  inspector_->add("other", *other_);
  const auto third = must(Loop::create({.clock = &clock_}));
  inspector_->add("third", *third);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  turns();
  inspector_->remove("other");
  run_other();
  turns();
  EXPECT_EQ(client->received, "") << "the third is still asked";
  third->run(Run::no_wait);
  turns();
  EXPECT_EQ(parse(body_of(client->received))["loops"].items.size(), 1u);
}

// ---- its end

TEST_F(Inspecting, DestructionRespondsToPendingRequests) {
  inspector_->add("other", *other_);
  const auto client = connect();
  client->send(ask_for("/state.json"));
  const auto viewer = watch();
  inspector_.reset();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 500 "));
  EXPECT_TRUE(viewer->is_ended);
  run_other();
  turns();
}

TEST_F(Inspecting, InspectorMayOutliveItsLoop) {
  inspector_->add("main", loop_);
  inspector_->add("other", *other_);
  EXPECT_TRUE(inspector_->listen(Address::loopback_ipv4(0)));
  const auto client = connect();
  client->send(ask_for("/state.json"));
  const auto viewer = watch();
  run_other(1);
  server_ = {};
  owned_.reset();
  run_other();
  EXPECT_FALSE(other_->is_measuring_callbacks());
  inspector_->add("again", *other_);
  inspector_->remove("again");
  EXPECT_EQ(inspector_->viewers(), 0u);
  EXPECT_FALSE(inspector_->listen(Address::loopback_ipv4(0)));
  inspector_.reset();
}

TEST_F(Inspecting, InspectorIsMovable) {
  inspector_->add("main", loop_);
  const auto viewer = watch();
  Inspector moved = std::move(*inspector_);
  inspector_.emplace(std::move(moved));
  pass(1s);
  EXPECT_EQ(events_of(*viewer), 2u);
}

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
using InspectingDeathTest = Inspecting;

TEST_F(InspectingDeathTest, DuplicateNameTraps) {
  inspector_->add("main", loop_);
  EXPECT_DEATH(inspector_->add("main", *other_), "another thing of this name");
}

TEST_F(InspectingDeathTest, UseInsideItsOwnCallbackTraps) {
  inspector_->add("one", [this](Readings&) { inspector_->remove("one"); });
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(get("/state.json"), "used in its OnRead");
}

TEST_F(InspectingDeathTest, ServingFromAnotherLoopTraps) {
  inspector_.emplace(must(Inspector::create(*other_)));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(get("/"), "its own loop");
}
#endif

// ---- for_each_active()

// Returns the kinds that keep the loop alive, and checks that the counts add up.
std::vector<ActiveKind> kinds_of(Loop& loop) {
  std::vector<ActiveKind> kinds;
  std::int64_t total = 0;
  for_each_active(loop, [&](const ActiveInfo& info) {
    kinds.push_back(info.kind);
    total += info.count;
  });
  EXPECT_EQ(total, loop.active_count());
  return kinds;
}

TEST_F(Inspecting, StateListsReasonsThatKeepLoopAlive) {
  Timer timer(*other_, [] {});
  EXPECT_TRUE(timer.start(5s));
  inspector_->add("other", *other_);
  auto client = connect();
  client->send(ask_for("/state.json"));
  for (int i = 0; i < 5; ++i) turns(), run_other();
  const Json loop = loop_named(parse(body_of(client->received)), "other");
  ASSERT_EQ(loop["kept_by"].items.size(), 1u);
  EXPECT_EQ(loop["kept_by"].items[0]["kind"].text, "timer");
  EXPECT_EQ(loop["kept_by"].items[0]["count"].number, 1);
}

TEST(ActiveHttp, ConnectionsOfServerAndClientAreListed) {
  const auto loop = must(Loop::create());
  std::optional<Exchange> kept;
  auto server = must(http::serve(*loop, Address::loopback_ipv4(0),
                                 [&](Exchange exchange) { kept = std::move(exchange); }));
  auto client = must(http::Client::create(*loop));
  bool is_done = false;
  const http::Call call =
      client.fetch("http://" + server.address().to_string() + "/",
                   [&](Result<http::Response> response) { is_done = response.has_value(); });
  EXPECT_EQ(kinds_of(*loop), (std::vector{ActiveKind::listener, ActiveKind::connecting,
                                          ActiveKind::http_call}));
  while (!kept) loop->run(Run::once);
  EXPECT_THAT(kinds_of(*loop),
              ::testing::IsSupersetOf({ActiveKind::listener, ActiveKind::http_request,
                                       ActiveKind::http_client, ActiveKind::http_call}));
  kept->respond("x");
  while (!is_done) loop->run(Run::once);
  // The client's connection is idle, and does not keep the loop alive.
  for (const ActiveKind kind : kinds_of(*loop)) {
    EXPECT_TRUE(kind == ActiveKind::listener || kind == ActiveKind::http_request ||
                kind == ActiveKind::http_server)
        << name_of(kind);
  }
}

}  // namespace
}  // namespace spate::testing
