// A server that closes connections on which nothing moves, and the peers it happens to.
#include <cstdio>
#include <list>
#include <memory>

#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/stream.h"
#include "spate/timer.h"

using namespace std::chrono_literals;
using spate::Address;
using spate::Stream;

namespace {

class Session final : public spate::StreamHandler {
 public:
  static inline int reaped = 0;

  explicit Session(Stream stream) : stream_(std::move(stream)) {
    stream_.set_idle_timeout(50ms);
    stream_.start(*this);
  }

 private:
  std::size_t on_data(spate::Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code error) override {
    if (error == spate::Error::idle_timeout) ++reaped;
    delete this;
  }

  Stream stream_;
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
  std::unique_ptr<spate::Loop> loop = spate::Loop::create().value();
  spate::Listener listener =
      spate::Listener::create(*loop, Address::loopback_ipv4(0), [](Stream stream, const Address&) {
        new Session(std::move(stream));
      }).value();

  std::list<Peer> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(*loop, listener.address());
  Peer talkative(*loop, listener.address());
  spate::Timer talk{*loop, [&] { talkative.say_something(); }};
  talk.start(10ms, 10ms);

  while (Session::reaped < 10) loop->run(spate::Run::once);
  std::printf("%d idle connections closed, %zu left\n", Session::reaped, listener.connections());
  return talkative.is_connected() && listener.connections() == 1 ? 0 : 1;
}
