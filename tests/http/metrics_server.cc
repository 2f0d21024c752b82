// The program of metrics_peers.py: a server on Workers, and an Inspector that shows it with names
// and labels of all kinds. Prints both addresses, and ends with its standard input.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "spate/http/inspector.h"
#include "spate/http/server.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/net/workers.h"

namespace http = spate::http;

namespace {

void read_odd_names(http::Readings& readings) {
  readings.gauge("nan", std::nan(""));
  readings.gauge("infinite", -std::numeric_limits<double>::infinity());
  readings.gauge("great", 1e300);
  readings.counter("hits", 1, {{"shard", "a \"quoted\\ value\nin two lines"}});
  readings.counter("hits", 2, {{"shard", "\xc3\xa4"}});
  readings.counter("hits", 3, {{"shard", "\xff"}});
  readings.counter("hits", 4, {{"source", "taken"}, {"le", "1"}, {"", "x"}, {"0", "y"}});
  readings.counter("hits", 5, {{"shard", "\xc3\xa4"}});  // Repeated.
  readings.counter("less", -1);                          // Not a counter.
  http::DurationHistogram durations;
  durations.counts[0] = 1;
  durations.counts.back() = 2;
  durations.sum = spate::Nanos{30'000'000'000};
  readings.histogram("wait_seconds", durations, {{"queue", "one"}});
  readings.gauge("wait_seconds_count", 7);  // A name of the histogram.
  readings.gauge("hits", 7);                // The counter's name in OpenMetrics.
}

}  // namespace

int main() {
  auto loop = spate::must(spate::Loop::create());
  auto workers = spate::must(spate::Workers::create({.threads = 2}));
  const auto site = spate::must(http::serve(
      *workers, spate::Address::loopback_ipv4(0),
      [](http::Exchange exchange) {
        const bool is_missing = exchange.request().path() == "/missing";
        exchange.respond(is_missing ? http::Status::not_found : http::Status::ok);
      },
      {.measure_durations = true}, {.balance = spate::Balance::round_robin}));
  auto inspector = spate::must(http::Inspector::create(*loop));
  inspector.add("workers", *workers);
  inspector.add("site \"one\"", site);
  inspector.add("odd\xff", read_odd_names);
  const auto page = spate::must(inspector.listen(spate::Address::loopback_ipv4(0)));
  std::printf("%s %s\n", site.address().to_string().c_str(), page.to_string().c_str());
  std::fflush(stdout);
  spate::Io input(*loop, STDIN_FILENO, spate::Events::read, [&loop] { loop->stop(); });
  if (!input.start()) return 1;
  loop->run();
  return 0;
}
