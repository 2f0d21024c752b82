// A client of HTTP/2 whose server says anything, in any pieces: each call has one outcome, bodies
// and the messages of a WebSocket are as long as they may be, and nothing is left in the end.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input.h"
#include "spate/http/client.h"
#include "spate/http/websocket.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

// What a server begins with: its settings, by which it takes WebSockets, and that it has seen ours.
constexpr std::string_view kBeginning("\0\0\6\4\0\0\0\0\0\0\10\0\0\0\1\0\0\0\4\1\0\0\0\0", 24);
constexpr std::size_t kMostBody = 500;

Loop& loop() {
  static const std::unique_ptr<Loop> made = must(Loop::create());
  return *made;
}

void turn(int count = 3) {
  for (int i = 0; i < count; ++i) loop().run(Run::no_wait);
}

class Speaker final : public StreamHandler {
 public:
  explicit Speaker(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override {}
  void say(std::string_view text) { stream_.write(text); }
  void end() { stream_.end(); }

 private:
  Stream stream_;
};

struct Outcomes {
  int asked = 0;
  int told = 0;
};

class Socket final : public http::WebSocketHandler {
 public:
  explicit Socket(http::Client& client, Outcomes& outcomes)
      : outcomes_(outcomes),
        socket_(must(http::WebSocket::connect(client, "ws://a/", *this,
                                              {.max_message = kMostBody, .close_timeout = {}}))) {
    ++outcomes_.asked;
  }
  void on_open() override { check(socket_.send("hello")); }
  void on_message(Bytes bytes, http::MessageKind) override {
    check(bytes.size() <= kMostBody);
    socket_.send(http::MessageKind::binary, bytes);
  }
  void on_closed(http::CloseCode, std::string_view, std::error_code) override { ++outcomes_.told; }

 private:
  Outcomes& outcomes_;
  http::WebSocket socket_;
};

http::Call ask(http::Client& client, Outcomes& outcomes, http::CallOptions options) {
  ++outcomes.asked;
  options.max_body = kMostBody;
  return client.fetch(
      "http://a/",
      [&outcomes](Result<http::Response> response) {
        ++outcomes.told;
        if (response) check(response->text().size() <= kMostBody);
      },
      std::move(options));
}

void converse(std::string_view script, std::size_t step) {
  std::vector<std::unique_ptr<Speaker>> speakers;
  http::ClientOptions options{.max_per_origin = 2, .max_head = 512};
  options.http2 = must(http::Http2::create({.max_streams = 5, .stream_window = 1024}));
  options.http2_without_tls = true;
  options.open = [&](std::string_view, std::uint16_t) -> Result<Stream> {
    auto [mine, theirs] = must(Stream::memory_pair(loop()));
    speakers.push_back(std::make_unique<Speaker>(std::move(theirs)));
    speakers.back()->say(kBeginning);
    return std::move(mine);
  };
  http::Client client = must(http::Client::create(loop(), std::move(options)));
  Outcomes outcomes;
  const std::string body(5000, 'x');
  const http::Call calls[] = {
      ask(client, outcomes, {}),
      ask(client, outcomes, {.method = http::Method::post, .body = bytes_of(body)}),
      ask(client, outcomes, {.decompress = true}),
      ask(client, outcomes, {.max_redirects = 2}),
  };
  const Socket socket(client, outcomes);
  turn(10);
  for (; !script.empty() && !speakers.empty();
       script.remove_prefix(std::min(step, script.size()))) {
    speakers.back()->say(script.substr(0, step));
    turn();
  }
  // Until nothing is asked again any more.
  for (int i = 0; i < 20 && outcomes.told < outcomes.asked; ++i) {
    for (std::size_t each = 0; each < speakers.size(); ++each) speakers[each]->end();
    turn(10);
  }
  check(outcomes.told == outcomes.asked);
  check(client.metrics().calls == 0);
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
