// A TCP echo server and a client, in one loop, on the loopback interface.
#include <cstdio>
#include <memory>
#include <string>

#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/stream.h"

using spate::Address;
using spate::Stream;

namespace {

class EchoSession final : public spate::StreamHandler {
 public:
  explicit EchoSession(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { delete this; }

  Stream stream_;
};

class Client final : public spate::StreamHandler {
 public:
  Client(Stream stream, std::string message)
      : stream_(std::move(stream)), message_(std::move(message)) {
    stream_.start(*this);
    stream_.write(message_);
  }

  bool succeeded() const { return echo_ == message_; }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    echo_ += spate::text_of(bytes);
    if (echo_.size() >= message_.size()) stream_.end();
    return bytes.size();
  }
  void on_closed(std::error_code) override { stream_.loop().stop(); }

  Stream stream_;
  std::string message_;
  std::string echo_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::Loop::create().value();

  spate::Listener listener =
      spate::Listener::create(*loop, Address::loopback_ipv4(0), [](Stream stream, const Address&) {
        new EchoSession(std::move(stream));
      }).value();

  std::unique_ptr<Client> client;
  spate::Connecting connecting =
      connect(*loop, listener.address(), [&](spate::Result<Stream> stream) {
        client = std::make_unique<Client>(std::move(stream).value(), std::string(100'000, '!'));
      });

  loop->run();
  std::puts(client->succeeded() ? "echoed" : "not echoed");
  return client->succeeded() ? 0 : 1;
}
