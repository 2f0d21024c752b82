// The Inspector, on a clock that stands still: its contents, its access rules, and its cost.
#include "spate/http/inspector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "http/harness.h"
#include "http/prometheus_text.h"
#include "spate/active.h"
#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/offload.h"
#include "spate/timer.h"
#include "support/json.h"
#include "support/own_loopback.h"
#include "support/tls_pair.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Inspector;
using http::InspectorOptions;
using http::Measure;
using http::Readings;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class Inspecting : public HttpServerTest {
 protected:
  Inspecting() {
    on_request = [this](Exchange exchange) { inspector_->serve(std::move(exchange)); };
    inspect({});
  }
  void inspect(const InspectorOptions& options) {
    inspector_.reset();
    inspector_.emplace(must(Inspector::create(loop_, options)));
  }
  static std::string ask_for(std::string_view path, std::string_view method = "GET") {
    return std::string(method).append(" ").append(path) + " HTTP/1.0\r\n\r\n";
  }
  static std::string body_of(std::string_view answer) {
    return std::string(answer.substr(std::min(answer.find("\r\n\r\n"), answer.size() - 4) + 4));
  }
  std::string get(std::string_view path) { return body_of(talk(ask_for(path))); }
  static Json parse(std::string_view text) {
    const auto json = JsonReader(text).read();
    EXPECT_TRUE(json) << text;
    return json.value_or(Json());
  }
  Json state() { return parse(get("/state.json")); }
  Json loop_named(const Json& all, const std::string& name) {
    for (const Json& loop : all["loops"].items) {
      if (loop["name"].text == name) return loop;
    }
    ADD_FAILURE() << "there is no loop " << name;
    return {};
  }
  std::unique_ptr<RawClient> watch() {
    auto client = connect();
    client->send(ask_for("/events"));
    turns();
    return client;
  }
  static std::size_t events_of(const RawClient& client) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = client.received.find("\ndata: ", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
  Result<Stream> connected(const Address& address) {
    Result<Stream> made = std::unexpected(std::error_code());
    const Connecting attempt =
        spate::connect(loop_, address, [&](Result<Stream> stream) { made = std::move(stream); });
    while (!made && !made.error()) turns();
    return made;
  }
  void run_other(int turns = 20) {
    for (int i = 0; i < turns; ++i) other_->run(Run::no_wait);
  }

  std::unique_ptr<Loop> other_ = must(Loop::create({.clock = &clock_}));
  std::optional<Inspector> inspector_;
};

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

// ---- the program's own metrics

TEST_F(Inspecting, ReadingsAreShown) {
  int calls = 0;
  inspector_->add("cache", [&](Readings& readings) {
    ++calls;
    readings.gauge("entries", 17);
    readings.counter("misses", 1e15 + 1);
    readings.gauge("ratio", std::numeric_limits<double>::infinity());
  });
  EXPECT_EQ(calls, 0);
  const Json source = state()["sources"][0];
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(source["source"].text, "cache");
  EXPECT_EQ(source["readings"][0]["name"].text, "entries");
  EXPECT_EQ(source["readings"][0]["kind"].text, "gauge");
  EXPECT_EQ(source["readings"][0]["value"].number, 17);
  EXPECT_EQ(source["readings"][1]["kind"].text, "counter");
  EXPECT_EQ(source["readings"][1]["value"].number, 1e15 + 1);
  EXPECT_EQ(source["readings"][2]["value"].kind, Json::Kind::null);
}

TEST_F(Inspecting, ServersClientsAndPoolsAreShown) {
  const auto client = must(http::Client::create(loop_));
  const ThreadPool pool;
  inspector_->add("site", server_);
  inspector_->add("upstream", client);
  inspector_->add("pool", pool);
  get("/");
  const PrometheusText text(get("/metrics"));
  EXPECT_EQ(text["spate_http_server_requests_total{source=\"site\"}"], 2);
  EXPECT_EQ(text["spate_http_server_connections{source=\"site\"}"], 1);
  EXPECT_EQ(text["spate_http_client_idle{source=\"upstream\"}"], 0);
  EXPECT_EQ(text["spate_thread_pool_queued{source=\"pool\"}"], 0);
}

TEST_F(Inspecting, UpstreamsOfGatewayAreShown) {
  http::GatewayOptions options;
  options.upstreams = http::UpstreamOptions{.servers = {{"http://a"}, {"http://b:81"}}};
  const auto gateway = must(http::Gateway::create(loop_, std::move(options)));
  inspector_->add("gate", gateway);
  const PrometheusText text(get("/metrics"));
  EXPECT_EQ(text["spate_http_gateway_forwarding{source=\"gate\"}"], 0);
  for (const std::string url : {"http://a/", "http://b:81/"}) {
    const std::string labels = "{source=\"gate\",upstream=\"" + url + "\"}";
    EXPECT_EQ(text["spate_http_gateway_upstream_healthy" + labels], 1);
    EXPECT_EQ(text["spate_http_gateway_upstream_checks_total" + labels], 0);
  }
}

// ---- Prometheus

TEST_F(Inspecting, MetricsAreInPrometheusFormat) {
  inspector_->add("main", loop_);
  inspector_->add("a \"quoted\\ name\nin two lines", *other_);
  const auto client = connect();
  client->send(ask_for("/metrics"));
  turns();
  pass(1s);
  EXPECT_THAT(client->received,
              HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const PrometheusText text(body_of(client->received));
  const std::string main = "{source=\"main\",loop=\"main\"}";
  EXPECT_EQ(text["spate_loop_up" + main], 1);
  EXPECT_GT(text["spate_loop_turns_total" + main], 0);
  EXPECT_EQ(text.type("spate_loop_turns_total"), "counter");
  EXPECT_EQ(text.type("spate_loop_pending"), "gauge");
  EXPECT_GT(text["spate_loop_streams{source=\"main\",loop=\"main\",state=\"open\"}"], 0);
  const std::string quoted = R"(a \"quoted\\ name\nin two lines)";
  const std::string other = "{source=\"" + quoted + "\",loop=\"" + quoted + "\"}";
  EXPECT_EQ(text["spate_loop_up" + other], 0);
  EXPECT_EQ(text["spate_loop_silent_seconds" + other], 1);
}

TEST_F(Inspecting, InvalidPrometheusNamesAreReplaced) {
  inspector_->add("one", [](Readings& readings) {
    readings.gauge("queue length (now)", 1);
    readings.gauge("queue-length (now)", 2);
    readings.gauge("", 3);
    readings.gauge("x_total", 4);
    readings.counter("x", 5);
    readings.gauge("nan", std::nan(""));
    readings.gauge("\xc3\xa4", 6);
  });
  inspector_->add("two", [](Readings& readings) {
    readings.gauge("queue length (now)", 7);
    readings.counter("x", 8);
  });
  const PrometheusText text(get("/metrics"));
  EXPECT_EQ(text["spate_program_queue_length__now_{source=\"one\"}"], 1) << "the first counts";
  EXPECT_EQ(text["spate_program_queue_length__now_{source=\"two\"}"], 7);
  EXPECT_EQ(text["spate_program_{source=\"one\"}"], 3);
  EXPECT_EQ(text["spate_program___{source=\"one\"}"], 6);
  EXPECT_TRUE(std::isnan(text["spate_program_nan{source=\"one\"}"]));
}

TEST_F(Inspecting, LabelsAreSortedAndDistinguishNumbers) {
  inspector_->add("one", [](Readings& readings) {
    readings.counter("hits", 1, {{"zone", "b"}, {"shard", "0"}});
    readings.counter("hits", 2, {{"shard", "0"}, {"zone", "b"}});  // Repeats the labels.
    readings.counter("hits", 3, {{"shard", "1"}, {"zone", ""}});
    readings.gauge("level", 4, {{"source", "x"}, {"le", "y"}, {"a-b", "z"}});
  });
  const PrometheusText text(get("/metrics"));
  EXPECT_EQ(text["spate_program_hits_total{shard=\"0\",source=\"one\",zone=\"b\"}"], 1);
  EXPECT_EQ(text["spate_program_hits_total{shard=\"1\",source=\"one\"}"], 3);
  EXPECT_EQ(text["spate_program_level{a_b=\"z\",source=\"one\"}"], 4);
  const Json readings = state()["sources"][0]["readings"];
  EXPECT_EQ(readings[0]["labels"]["zone"].text, "b");
  EXPECT_FALSE(readings[2]["labels"].has("zone"));
}

TEST_F(Inspecting, HistogramsAreCumulative) {
  inspector_->add("one", [](Readings& readings) {
    http::DurationHistogram durations;
    durations.counts = {1, 2};
    durations.counts.back() = 4;
    durations.sum = 90s;
    readings.histogram("wait_seconds", durations);
    readings.gauge("wait_seconds_sum", 5);  // The name is taken.
  });
  const PrometheusText text(get("/metrics"));
  const std::string bucket = "spate_program_wait_seconds_bucket{source=\"one\",le=";
  EXPECT_EQ(text.type("spate_program_wait_seconds"), "histogram");
  EXPECT_EQ(text[bucket + "\"0.0001\"}"], 1);
  EXPECT_EQ(text[bucket + "\"0.00025\"}"], 3);
  EXPECT_EQ(text[bucket + "\"1.0\"}"], 3);
  EXPECT_EQ(text[bucket + "\"+Inf\"}"], 7);
  EXPECT_EQ(text["spate_program_wait_seconds_sum{source=\"one\"}"], 90);
  EXPECT_EQ(text["spate_program_wait_seconds_count{source=\"one\"}"], 7);
  const Json reading = state()["sources"][0]["readings"][0];
  EXPECT_EQ(reading["kind"].text, "histogram");
  EXPECT_EQ(reading["value"].number, 7);
  EXPECT_EQ(reading["sum"].number, 90);
  EXPECT_EQ(reading["counts"][1].number, 2);
}

TEST_F(Inspecting, OpenMetricsIsSentIfPreferred) {
  inspector_->add("one", [](Readings& readings) { readings.counter("hits", 1); });
  const auto ask = [&](std::string_view accept) {
    return talk("GET /metrics HTTP/1.0\r\nAccept: " + std::string(accept) + "\r\n\r\n");
  };
  const std::string answer =
      ask("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                                "charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\n# TYPE spate_program_hits counter\n"
                                "spate_program_hits_total{source=\"one\"} 1\n"));
  EXPECT_THAT(answer, EndsWith("\n# EOF\n"));
  for (const char* accept : {"*/*", "text/plain", "application/openmetrics-text;version=2.0.0",
                             "application/openmetrics-text;version=1.0.0;q=0.1,*/*;q=0.2"}) {
    EXPECT_THAT(ask(accept), HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; ")) << accept;
    EXPECT_THAT(ask(accept), Not(HasSubstr("# EOF"))) << accept;
  }
}

TEST_F(Inspecting, DurationsOfRequestsAreMeasuredByStatus) {
  serve_with({.measure_durations = true});
  on_request = [this](Exchange exchange) {
    const std::string path(exchange.request().path());
    if (path == "/slow") clock_.advance(30ms);
    exchange.respond(path == "/missing" ? http::Status::not_found : http::Status::ok);
  };
  for (const char* path : {"/slow", "/", "/missing"}) talk(ask_for(path));
  talk("nonsense\r\n\r\n");
  const http::ServerMetrics metrics = server_.metrics();
  EXPECT_EQ(metrics.durations[1].count(), 2u);
  EXPECT_EQ(metrics.durations[1].counts[0], 1u);
  EXPECT_EQ(metrics.durations[1].counts[8], 1u);  // From 25 ms to 50 ms.
  EXPECT_EQ(metrics.durations[1].sum, 30ms);
  EXPECT_EQ(metrics.durations[3].count(), 2u);
  inspector_->add("site", server_);
  on_request = [this](Exchange exchange) { inspector_->serve(std::move(exchange)); };
  const PrometheusText text(get("/metrics"));
  const std::string labels = "{source=\"site\",status=\"2xx\"}";
  EXPECT_EQ(text["spate_http_server_request_duration_seconds_count" + labels], 2);
  EXPECT_EQ(text["spate_http_server_requests_total{source=\"site\"}"], 4);
}

TEST_F(Inspecting, DurationsAreNotMeasuredByDefault) {
  get("/");
  for (const http::DurationHistogram& each : server_.metrics().durations)
    EXPECT_EQ(each.count(), 0u);
}

// ---- viewers

TEST_F(Inspecting, EventsAreSentAtOnceAndPeriodically) {
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

TEST_F(Inspecting, NothingRunsWithoutViewers) {
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

TEST_F(Inspecting, MeasurementEnabledElsewhereStaysEnabled) {
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

TEST_F(Inspecting, LoopsMayAlwaysBeMeasured) {
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

TEST_F(Inspecting, ViewerThatDoesNotReadIsSkipped) {
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

TEST_F(Inspecting, ViewersBeyondLimitAreRefused) {
  inspect({.max_viewers = 2});
  const auto first = watch();
  auto second = watch();
  EXPECT_THAT(watch()->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(inspector_->viewers(), 2u);
  second.reset();
  turns();
  EXPECT_THAT(watch()->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(Inspecting, RequestsBeyondPendingLimitAreRefused) {
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

TEST_F(Inspecting, ViewerThatLeavesDuringCollectionIsRemoved) {
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

class InspectingByItself : public Inspecting {
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
