// A TCP echo server.   echo [port]     Talk to it: nc localhost 7000
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "spate/net/server.h"

namespace {

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

}  // namespace

int main(int count, char** arguments) {
  const int port = count > 1 ? std::atoi(arguments[1]) : 7000;
  auto loop = spate::must(spate::Loop::create());
  auto server =
      spate::serve<Echo>(*loop, spate::Address::any_ipv6(static_cast<std::uint16_t>(port)));
  if (!server) {
    std::fprintf(stderr, "echo: port %d: %s\n", port, server.error().message().c_str());
    return 1;
  }
  std::printf("%s\n", server->address().to_string().c_str());
  std::fflush(stdout);

  if (loop->on_signal(SIGTERM, [&] { server->drain(std::chrono::seconds(5)); })) return 1;
  loop->run();
}
