// The Inspector: readings of a program, and metrics in the format of Prometheus.
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "http/inspecting_harness.h"
#include "http/prometheus_text.h"
#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/offload.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Inspector;
using http::Readings;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class InspectingMetrics : public InspectingTest {};

// ---- the program's own metrics

TEST_F(InspectingMetrics, ReadingsAreShown) {
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

TEST_F(InspectingMetrics, ServersClientsAndPoolsAreShown) {
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

TEST_F(InspectingMetrics, UpstreamsOfGatewayAreShown) {
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

TEST_F(InspectingMetrics, MetricsAreInPrometheusFormat) {
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

TEST_F(InspectingMetrics, InvalidPrometheusNamesAreReplaced) {
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

TEST_F(InspectingMetrics, LabelsAreSortedAndDistinguishNumbers) {
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

TEST_F(InspectingMetrics, HistogramsAreCumulative) {
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

TEST_F(InspectingMetrics, OpenMetricsIsSentIfPreferred) {
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

TEST_F(InspectingMetrics, DurationsOfRequestsAreMeasuredByStatus) {
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

TEST_F(InspectingMetrics, DurationsAreNotMeasuredByDefault) {
  get("/");
  for (const http::DurationHistogram& each : server_.metrics().durations)
    EXPECT_EQ(each.count(), 0u);
}

}  // namespace
}  // namespace spate::testing
