// The server of locks, in production.
//   locks 7000          talk to it: nc localhost 7000
#include <csignal>
#include <iostream>

#include "server.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: locks [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  LockServer server(*loop, spate::must(spate::Address::parse_listen(argv[1])));
  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(std::chrono::seconds(5)); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
