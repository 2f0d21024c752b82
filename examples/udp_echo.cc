// A UDP echo server. Packets come in batches, and go back in batches.
//   udp_echo 7000      talk to it: nc -u localhost 7000
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "spate/loop.h"
#include "spate/net/datagram.h"

namespace {

class Echo final : public spate::DatagramHandler {
 public:
  explicit Echo(spate::Datagram socket) : socket_(std::move(socket)) { socket_.start(*this); }

  void on_packets(std::span<const spate::Packet> packets) override {
    answers_.clear();
    for (const spate::Packet& packet : packets) answers_.push_back({packet.bytes, &packet.peer});
    socket_.send(answers_);
  }

 private:
  spate::Datagram socket_;
  std::vector<spate::Outgoing> answers_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: udp_echo PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse("[::]:" + std::string(argv[1])));
  auto socket = spate::must(spate::Datagram::create(*loop, address));
  const std::string bound = socket.local_address().to_string();
  const Echo echo(std::move(socket));
  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << bound << std::endl;
  loop->run();
}
