// A server that is replaced while it serves: on SIGHUP it starts its successor, passes it the
// listening socket, and ends when the successor is ready. Responses have the process's number.
//   hot_restart 8080    curl localhost:8080 ; kill -HUP $(curl -s localhost:8080)
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "spate/http/server.h"
#include "spate/net/process.h"
#include "spate/net/service_manager.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

// The next process. It is ready when it prints its address, as this process does. If it does not
// start, this process continues.
class Successor final : public spate::StreamHandler {
 public:
  Successor(spate::Loop& loop, spate::ProcessOptions options, std::function<void(int pid)> on_ready)
      : loop_(loop), options_(std::move(options)), on_ready_(std::move(on_ready)) {}

  void start() {
    if (process_.is_running()) return;
    auto process = spate::spawn(loop_, options_, [this](const spate::Child&) {
      timeout_.stop();
      std::cerr << "the successor ended\n";
    });
    if (!process) {
      std::cerr << "the successor does not start: " << process.error().message() << '\n';
      return;
    }
    process_ = std::move(*process);
    process_.output.start(*this);
    timeout_.start(30s);
  }

  std::size_t on_data(spate::Bytes bytes) override {
    if (!timeout_.is_active() || !spate::text_of(bytes).ends_with('\n')) return 0;
    timeout_.stop();
    on_ready_(process_.pid());
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

 private:
  spate::Loop& loop_;
  const spate::ProcessOptions options_;
  const std::function<void(int pid)> on_ready_;
  spate::Process process_;
  spate::Timer timeout_{loop_, [this] { process_.kill(SIGKILL); }};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hot_restart PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  auto manager = spate::must(spate::ServiceManager::create(*loop));
  ::unsetenv("WATCHDOG_PID");  // The successor has another number, and answers the watchdog.

  const std::vector<int> inherited = spate::Listener::inherited();
  const auto address = spate::must(spate::Address::parse(std::string("127.0.0.1:") + argv[1]));
  const int socket = inherited.empty() ? spate::must(spate::Listener::open(address)) : inherited[0];

  // A connection is accepted with its request, so no request arrives after the end of a drain.
  const auto answer = [](spate::http::Exchange exchange) {
    exchange.respond(std::to_string(::getpid()) + '\n');
  };
  auto server = spate::must(spate::http::serve(*loop, address, answer, {},
                                               {.defer_accept = 10s, .socket = socket}));
  const auto end = [&] { server.drain(20s, [&] { loop->stop(); }); };

  Successor successor(*loop,
                      {.file = argv[0],
                       .arguments = {argv[1]},
                       .output = spate::Stdio::pipe(),
                       .listening = {socket}},
                      [&](int pid) {
                        manager.main_process(pid);
                        end();
                      });
  spate::must(loop->on_signal(SIGHUP, [&] { successor.start(); }));
  spate::must(loop->on_signal(SIGTERM, end));

  std::cout << server.address().to_string() << std::endl;
  manager.ready();
  loop->run();
}
