// A chat room: a line from one client is sent to all others. A client that does not read is
// disconnected when more than 64 kB are queued for it.
//   chat 7000          join it: nc localhost 7000
#include <csignal>
#include <functional>
#include <iostream>
#include <string>

#include "spate/net/framing.h"
#include "spate/net/server.h"

using namespace std::chrono_literals;

namespace {

class User : public spate::Session {
 public:
  explicit User(int& joined) : name_("user " + std::to_string(++joined)) {}

  void on_open() override {
    stream().set_limits({.low = 4'000, .high = 16'000, .max = 64'000});
    stream().write("you are " + name_ + "\n");
    tell_others(name_ + " joined\n");
  }
  std::size_t on_data(spate::Bytes bytes) override {
    const spate::Split lines = split(bytes, spate::Delimiter{.max = 1000}, [&](spate::Bytes line) {
      tell_others(name_ + ": " + std::string(spate::text_of(line)) + "\n");
    });
    if (lines.broken) stream().close();
    return lines.used;
  }
  void on_closed(std::error_code) override { tell_others(name_ + " left\n"); }

 private:
  void tell_others(const std::string& line) {
    sessions<User>().for_each([&](User& user) {
      if (&user != this) user.stream().write(line);
    });
  }

  const std::string name_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: chat [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  int joined = 0;
  auto server = spate::must(spate::serve<User>(*loop, address, std::ref(joined)));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
