// A UDP echo server and a client, in one loop, in batches.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "spate/loop.h"
#include "spate/net/datagram.h"

using spate::Address;
using spate::Datagram;
using spate::Packet;

namespace {

class EchoServer final : public spate::DatagramHandler {
 public:
  explicit EchoServer(spate::Loop& loop)
      : socket_(spate::must(Datagram::create(loop, Address::loopback_ipv4(0)))) {
    socket_.start(*this);
  }
  Address address() const { return socket_.local_address(); }

 private:
  void on_packets(std::span<const Packet> packets) override {
    std::vector<spate::Outgoing> answers;
    for (const Packet& packet : packets) answers.push_back({packet.bytes, &packet.peer});
    socket_.send(answers);
  }

  Datagram socket_;
};

class Client final : public spate::DatagramHandler {
 public:
  Client(spate::Loop& loop, const Address& server)
      : loop_(loop), socket_(spate::must(Datagram::create(loop, Address::loopback_ipv4(0)))) {
    socket_.connect(server);
    socket_.start(*this);
    for (const char* text : {"one", "two", "three"}) socket_.send(spate::bytes_of(text));
  }
  const std::string& heard() const { return heard_; }

 private:
  void on_packets(std::span<const Packet> packets) override {
    for (const Packet& packet : packets) heard_ += std::string(spate::text_of(packet.bytes)) + ' ';
    if (heard_.size() >= 14) loop_.stop();
  }

  spate::Loop& loop_;
  Datagram socket_;
  std::string heard_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  EchoServer server(*loop);
  Client client(*loop, server.address());
  loop->run();
  std::puts(client.heard().c_str());
  return client.heard() == "one two three " ? 0 : 1;
}
