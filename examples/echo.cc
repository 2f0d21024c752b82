// A TCP echo server.
//   echo 7000          talk to it: nc localhost 7000
#include <csignal>
#include <iostream>

#include "spate/net/server.h"

using namespace std::chrono_literals;

namespace {

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: echo [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto server = spate::must(spate::serve<Echo>(*loop, address));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
