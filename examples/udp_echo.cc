// A UDP echo server. It receives and sends packets in batches.
//   udp_echo 7000      talk to it: nc -u localhost 7000
#include <csignal>
#include <iostream>
#include <vector>

#include "spate/loop.h"
#include "spate/net/datagram.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: udp_echo [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto socket = spate::must(spate::Datagram::create(*loop, address));
  std::vector<spate::Outgoing> answers;
  spate::must(socket.start({.on_packets = [&](std::span<const spate::Packet> packets) {
    answers.clear();
    for (const spate::Packet& packet : packets) answers.push_back({packet.bytes, &packet.peer});
    socket.send(answers);
  }}));
  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << socket.local_address().to_string() << std::endl;
  loop->run();
}
