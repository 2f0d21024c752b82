// A server of HTTP/2 whose client says anything, in any pieces: bodies come as long as they may be,
// tunnels echo, and nothing is left in the end.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "input.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

Loop& loop() {
  static const std::unique_ptr<Loop> made = must(Loop::create());
  return *made;
}

// Says all of the script, a step at a time.
class Speaker final : public StreamHandler {
 public:
  explicit Speaker(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override {}

  void speak(std::string_view script, std::size_t step) {
    for (; !script.empty(); script.remove_prefix(std::min(step, script.size()))) {
      stream_.write(script.substr(0, step));
      for (int turn = 0; turn < 3; ++turn) loop().run(Run::no_wait);
    }
  }
  void end() {
    stream_.end();
    for (int turn = 0; turn < 30; ++turn) loop().run(Run::no_wait);
  }

 private:
  Stream stream_;
};

// Of a tunnel; owns itself.
class Echo final : public StreamHandler {
 public:
  explicit Echo(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  std::size_t on_data(Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { delete this; }

 private:
  ~Echo() = default;
  Stream stream_;
};

constexpr std::size_t kMostBody = 500;

void answer(http::Exchange exchange) {
  if (auto tunnel = exchange.upgrade(exchange.request()[http::FieldId::upgrade])) {
    new Echo(std::move(*tunnel));
    return;
  }
  if (!exchange.request().has_body()) return void(exchange.respond("hello\n"));
  read_body(std::move(exchange), kMostBody, [](http::Exchange whole, Bytes body) {
    check(body.size() <= kMostBody);
    whole.respond(std::string(2000, 'x'));
  });
}

void converse(std::string_view script, std::size_t step) {
  http::ServerOptions options{.max_head = 512, .max_fields = 10};
  options.http2 = must(http::Http2::create({.max_streams = 8, .stream_window = 1024}));
  http::Server server = must(http::Server::create(loop(), answer, std::move(options)));
  auto [mine, theirs] = must(Stream::memory_pair(loop()));
  server.add(std::move(theirs));
  Speaker speaker(std::move(mine));
  speaker.speak(kPreface, kPreface.size());
  speaker.speak(script, step);
  speaker.end();
  check(server.metrics().exchanges == 0);
  server = {};
  for (int turn = 0; turn < 3; ++turn) loop().run(Run::no_wait);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  fuzz::Input input(data, std::min<std::size_t>(size, 4096));
  const std::size_t step = 1 + input.below(64);
  fuzz::converse(input.rest(), step);
  return 0;
}
