// The Inspector: viewers of its events, and its access rules.
#include <chrono>
#include <string>
#include <vector>

#include "http/inspecting_harness.h"
#include "support/own_loopback.h"

namespace spate::testing {
namespace {

using http::Inspector;
using http::Measure;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class InspectingViewers : public InspectingTest {};

// ---- viewers

TEST_F(InspectingViewers, EventsAreSentAtOnceAndPeriodically) {
  inspector_->add("main", loop_);
  const auto viewer = watch();
  EXPECT_EQ(events_of(*viewer), 1u);
  EXPECT_THAT(viewer->received, HasSubstr("\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_EQ(inspector_->viewers(), 1u);
  pass(999ms);
  EXPECT_EQ(events_of(*viewer), 1u);
  for (int i = 0; i < 3; ++i) pass(1s);
  EXPECT_EQ(events_of(*viewer), 4u);
  const std::size_t last = viewer->received.rfind("data: ") + 6;
  const Json json = parse(viewer->received.substr(last, viewer->received.find('\n', last) - last));
  EXPECT_EQ(json["viewers"].number, 1);
  EXPECT_EQ(json["period"].number, 1);
}

TEST_F(InspectingViewers, NothingRunsWithoutViewers) {
  inspector_->add("main", loop_);
  inspector_->add("other", *other_);
  turns();
  const std::size_t timers = loop_.metrics().active_timers;
  {
    const auto viewer = watch();
    run_other();
    turns();
    EXPECT_GT(loop_.metrics().active_timers, timers);
    for (Loop* loop : {&loop_, other_.get()}) {
      EXPECT_TRUE(loop->is_measuring_callbacks());
      EXPECT_TRUE(loop->is_measuring_waits());
    }
  }
  turns();
  run_other();
  turns();
  EXPECT_EQ(inspector_->viewers(), 0u);
  for (Loop* loop : {&loop_, other_.get()}) {
    EXPECT_FALSE(loop->is_measuring_callbacks());
    EXPECT_FALSE(loop->is_measuring_waits());
  }
  for (int i = 0; i < 100; ++i) pass(1s);  // Timers of the closed connection expire, too.
  EXPECT_EQ(loop_.metrics().active_timers, timers);
  const std::uint64_t events = loop_.metrics().events;
  const std::uint64_t others = other_->metrics().events;
  for (int i = 0; i < 100; ++i) pass(1s);
  run_other();
  EXPECT_EQ(loop_.metrics().events, events);
  EXPECT_EQ(other_->metrics().events, others);
}

TEST_F(InspectingViewers, MeasurementEnabledElsewhereStaysEnabled) {
  inspector_->add("main", loop_);
  loop_.measure_waits(true);
  {
    const auto viewer = watch();
  }
  turns();
  EXPECT_EQ(inspector_->viewers(), 0u);
  EXPECT_TRUE(loop_.is_measuring_waits());
  EXPECT_FALSE(loop_.is_measuring_callbacks());
}

TEST_F(InspectingViewers, LoopsMayAlwaysBeMeasured) {
  inspect({.measure = Measure::always});
  inspector_->add("main", loop_);
  inspector_->add("other", *other_);
  run_other();
  {
    const auto viewer = watch();
  }
  turns();
  run_other();
  for (Loop* loop : {&loop_, other_.get()}) EXPECT_TRUE(loop->is_measuring_waits());
  inspector_->remove("main");
  EXPECT_FALSE(loop_.is_measuring_waits());
  inspector_.reset();
  run_other();
  EXPECT_FALSE(other_->is_measuring_waits());
}

TEST_F(InspectingViewers, ViewerThatDoesNotReadIsSkipped) {
  inspector_->add("main", loop_);
  const auto slow = watch();
  const auto quick = watch();
  slow->stream().pause();
  std::vector<std::pair<Stream, Stream>> pairs;  // So that an event is long.
  for (int i = 0; i < 100; ++i) pairs.push_back(must(Stream::memory_pair(loop_)));
  const auto queued = [&] {
    return loop_named(parse(get("/state.json")), "main")["streams"]["queued"].number;
  };
  for (int i = 0; i < 20; ++i) pass(1s);
  const double before = queued();
  for (int i = 0; i < 20; ++i) pass(1s);
  EXPECT_EQ(queued(), before) << "one event at most waits";
  EXPECT_GE(events_of(*quick), 40u);
  EXPECT_EQ(inspector_->viewers(), 2u);
  slow->stream().resume();
  turns(200);
  pass(1s);
  turns(200);
  EXPECT_LT(events_of(*slow), 30u);
}

TEST_F(InspectingViewers, ViewersBeyondLimitAreRefused) {
  inspect({.max_viewers = 2});
  const auto first = watch();
  auto second = watch();
  EXPECT_THAT(watch()->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(inspector_->viewers(), 2u);
  second.reset();
  turns();
  EXPECT_THAT(watch()->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(InspectingViewers, RequestsBeyondPendingLimitAreRefused) {
  inspector_->add("other", *other_);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 65; ++i) {
    clients.push_back(connect());
    clients.back()->send(ask_for("/state.json"));
  }
  turns();
  EXPECT_EQ(clients.front()->received, "");
  EXPECT_THAT(clients.back()->received, StartsWith("HTTP/1.1 503 "));
  pass(1s);
  for (int i = 0; i < 64; ++i)
    EXPECT_THAT(clients[static_cast<std::size_t>(i)]->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(InspectingViewers, ViewerThatLeavesDuringCollectionIsRemoved) {
  inspector_->add("other", *other_);
  auto viewer = watch();
  viewer.reset();
  run_other();
  turns();
  EXPECT_EQ(inspector_->viewers(), 0u);
  run_other();
  EXPECT_FALSE(other_->is_measuring_callbacks());
}

// ---- access

class InspectingByItself : public InspectingTest {
 protected:
  std::string ask(const Address& address, std::string_view host) {
    Stream stream;
    std::string received;
    bool is_closed = false;
    StreamCallbacks callbacks;
    callbacks.on_data = [&](Bytes bytes) { return received += text_of(bytes), bytes.size(); };
    callbacks.on_closed = [&](std::error_code) { is_closed = true; };
    stream = must(connected(address));
    EXPECT_FALSE(stream.start(std::move(callbacks)));
    EXPECT_TRUE(stream.write("GET / HTTP/1.1\r\nConnection: close\r\nHost: " + std::string(host) +
                             "\r\n\r\n"));
    while (!is_closed) turns();
    return received.substr(0, 12);
  }
};

TEST_F(InspectingByItself, RequestsForOtherHostNamesAreRejected) {
  inspect({.hosts = {"inspected.example"}});
  const Address at = must(inspector_->listen(own_address(0)));
  for (const char* host : {"127.0.0.1", "127.0.0.1:9000", "[::1]:9000", "localhost", "LOCALHOST:1",
                           "inspected.example", "Inspected.Example:80"})
    EXPECT_EQ(ask(at, host), "HTTP/1.1 200") << host;
  for (const char* host :
       {"stranger.example", "127.0.0.1.stranger.example", "localhost.", "xn--inspected.example"})
    EXPECT_EQ(ask(at, host), "HTTP/1.1 403") << host;
}

TEST_F(InspectingByItself, OnlyLoopbackAddressesAreAcceptedByDefault) {
  const auto error_of = [&](const Address& address) {
    const auto bound = inspector_->listen(address);
    return bound ? std::error_code() : bound.error();
  };
  EXPECT_EQ(error_of(Address::any_ipv4(0)), std::errc::operation_not_permitted);
  EXPECT_EQ(error_of(Address::any_ipv6(0)), std::errc::operation_not_permitted);
  EXPECT_EQ(error_of(must(Address::parse("192.0.2.1:0"))), std::errc::operation_not_permitted);
  EXPECT_EQ(error_of(must(Address::parse("[::ffff:192.0.2.1]:0"))),
            std::errc::operation_not_permitted);
  EXPECT_EQ(error_of(Address()), std::errc::operation_not_permitted);
  EXPECT_FALSE(error_of(Address::loopback_ipv4(0)));
  EXPECT_FALSE(error_of(must(Address::parse("[::ffff:127.0.0.1]:0"))));
  EXPECT_FALSE(error_of(must(Address::abstract("spate-inspector-test"))));
  inspect({.reach = http::Reach::anywhere});
  EXPECT_FALSE(error_of(Address::any_ipv4(0)));
}

}  // namespace
}  // namespace spate::testing
