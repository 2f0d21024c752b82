// A TCP proxy: what comes from one side goes to the other. It passes on the end of either side
// while the other still flows, and a reset; a side that reads slowly slows the other down.
#include <cstdio>
#include <memory>
#include <string>

#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "spate/net/stream.h"

using spate::Address;
using spate::Stream;

namespace {

// A client, and the way to the server for him.
class Passage {
 public:
  Passage(Stream client, const Address& server) : client_(std::move(client)) {
    connecting_ = connect(client_.loop(), server, [this](spate::Result<Stream> stream) {
      if (!stream) return delete this;
      relaying_ = relay(std::move(client_), std::move(*stream),
                        [this](const spate::RelayResult&) { delete this; });
    });
  }

 private:
  Stream client_;
  spate::Connecting connecting_;
  spate::Relaying relaying_;
};

// Counts what it is sent, and answers once the client has ended.
class CountingServer final : public spate::StreamHandler {
 public:
  explicit CountingServer(Stream stream) : stream_(std::move(stream)) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    count_ += bytes.size();
    return bytes.size();
  }
  void on_end() override {
    stream_.write("I have counted " + std::to_string(count_));
    stream_.end();
  }
  void on_closed(std::error_code) override { delete this; }

  Stream stream_;
  std::size_t count_ = 0;
};

class Client final : public spate::StreamHandler {
 public:
  explicit Client(Stream stream) : stream_(std::move(stream)) {
    stream_.start(*this);
    stream_.write(std::string(3'000'000, '.'));
    stream_.end();
  }
  const std::string& answer() const { return answer_; }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    answer_ += spate::text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { stream_.loop().stop(); }

  Stream stream_;
  std::string answer_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  const Address anywhere = Address::loopback_ipv4(0);

  spate::Listener server =
      spate::must(spate::Listener::create(*loop, anywhere, [](Stream stream, const Address&) {
        new CountingServer(std::move(stream));
      }));
  spate::Listener proxy =
      spate::must(spate::Listener::create(*loop, anywhere, [&](Stream stream, const Address&) {
        new Passage(std::move(stream), server.address());
      }));

  std::unique_ptr<Client> client;
  spate::Connecting connecting = connect(*loop, proxy.address(), [&](spate::Result<Stream> stream) {
    client = std::make_unique<Client>(std::move(stream).value());
  });

  loop->run();
  std::puts(client->answer().c_str());
  return client->answer() == "I have counted 3000000" ? 0 : 1;
}
