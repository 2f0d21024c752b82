// A server that closes connections on which nothing moves, and the peers it happens to.
#include <cstdio>
#include <functional>
#include <list>
#include <memory>

#include "spate/net/connect.h"
#include "spate/net/server.h"
#include "spate/timer.h"

using namespace std::chrono_literals;
using spate::Address;
using spate::Stream;

namespace {

class Guest : public spate::Session {
 public:
  explicit Guest(int& reaped) : reaped_(reaped) {}

  void on_open() override { stream().set_idle_timeout(50ms); }
  std::size_t on_data(spate::Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code error) override {
    if (error == spate::Error::idle_timeout) ++reaped_;
  }

 private:
  int& reaped_;
};

class Peer final : public spate::StreamHandler {
 public:
  Peer(spate::Loop& loop, const Address& server) {
    connecting_ = connect(loop, server, [this](spate::Result<Stream> stream) {
      stream_ = std::move(stream).value();
      stream_.start(*this);
    });
  }
  void say_something() {
    if (stream_.is_open()) stream_.write("still here");
  }
  bool is_connected() const { return stream_.is_open(); }

 private:
  std::size_t on_data(spate::Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override {}

  spate::Connecting connecting_;
  Stream stream_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  int reaped = 0;
  auto server =
      spate::must(spate::serve<Guest>(*loop, Address::loopback_ipv4(0), std::ref(reaped)));

  std::list<Peer> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(*loop, server.address());
  Peer talkative(*loop, server.address());
  spate::Timer talk{*loop, [&] { talkative.say_something(); }};
  talk.start(10ms, 10ms);

  while (reaped < 10) loop->run(spate::Run::once);
  std::printf("%d idle connections closed, %zu left\n", reaped, server.sessions().size());
  return talkative.is_connected() && server.sessions().size() == 1 ? 0 : 1;
}
