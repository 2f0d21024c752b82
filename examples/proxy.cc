// A TCP proxy. It forwards the end of each side while the other continues, and resets. A slow
// reader slows its sender down.
//   proxy 8080 example.org 80         talk through it: nc localhost 8080
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "spate/net/connect.h"
#include "spate/net/relay.h"
#include "spate/net/server.h"

namespace {

struct Target {
  std::string host;
  std::uint16_t port;
};

class Client : public spate::Session {
 public:
  explicit Client(const Target& target) : target_(target) {}

  void on_open() override {
    stream().pause();
    connecting_ =
        connect(stream().loop(), target_.host, target_.port, spate::bind<&Client::on_server>(this));
  }

 private:
  void on_server(spate::Result<spate::Stream> server) {
    if (!server) return abort();
    relaying_ = relay(std::move(stream()), std::move(*server),
                      [this](const spate::RelayResult&) { abort(); });
  }

  const Target& target_;
  spate::Connecting connecting_;
  spate::Relaying relaying_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: proxy [HOST:]PORT HOST HOST-PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  const Target target{argv[2], static_cast<std::uint16_t>(std::atoi(argv[3]))};
  auto server = spate::must(spate::serve<Client>(*loop, address, std::cref(target)));

  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
