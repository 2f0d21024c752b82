// A server with an http::Inspector beside its Workers, and a route that blocks one of them.
//   inspected_server 8080 9000    a browser: http://localhost:9000/
//                                 curl localhost:8080/ ; curl localhost:8080/slow
#include <atomic>
#include <csignal>
#include <iostream>
#include <thread>

#include "spate/http/inspector.h"
#include "spate/http/router.h"

using namespace std::chrono_literals;
using spate::http::Exchange;

namespace {

std::atomic<int> greeted{0};

// One object per worker.
class Site final : public spate::http::Service {
 public:
  Site() {
    router_.get("/", [](Exchange exchange) {
      ++greeted;
      exchange.respond("hello\n");
    });
    // A mistake on purpose: it blocks all connections of this worker, as the Inspector shows.
    router_.get("/slow", [](Exchange exchange) {
      std::this_thread::sleep_for(2s);
      exchange.respond("at last\n");
    });
  }
  void on_request(Exchange exchange) override { router_.on_request(std::move(exchange)); }

 private:
  spate::http::Router router_;
};

spate::Address local(const char* port) {
  return spate::must(spate::Address::parse(std::string("127.0.0.1:") + port));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: inspected_server PORT INSPECTOR_PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  auto workers = spate::must(spate::Workers::create({.threads = 2}));
  const auto site = spate::must(spate::http::serve(
      *workers, local(argv[1]), [](spate::Loop&) { return std::make_unique<Site>(); },
      {.measure_durations = true}));

  // Created last, so destroyed first: the objects that it shows must outlive it.
  auto inspector = spate::must(spate::http::Inspector::create(*loop, {.response_timeout = 200ms}));
  inspector.add("workers", *workers);
  inspector.add("server", site);
  inspector.add("main", *loop);
  inspector.add("site",
                [](spate::http::Readings& readings) { readings.counter("greeted", greeted); });
  const auto page = spate::must(inspector.listen(local(argv[2])));
  std::cout << page.to_string() << '\n' << site.address().to_string() << std::endl;

  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  loop->run();
  return workers->stop(5s) ? 0 : 1;
}
