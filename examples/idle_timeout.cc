// An echo server that closes a connection when no byte moved on it for some seconds.
//   idle_timeout 7000 10         talk to it, and wait: nc localhost 7000
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "spate/net/server.h"

namespace {

class Echo : public spate::Session {
 public:
  explicit Echo(spate::Nanos limit) : limit_(limit) {}

  void on_open() override {
    peer_ = stream().peer_address().to_string();
    stream().set_idle_timeout(limit_);
  }
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    if (error) std::cout << peer_ << ": " << error.message() << std::endl;
  }

 private:
  const spate::Nanos limit_;
  std::string peer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: idle_timeout [HOST:]PORT SECONDS\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  const auto limit = std::chrono::seconds(std::atoi(argv[2]));
  auto server = spate::must(spate::serve<Echo>(*loop, address, limit));

  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
