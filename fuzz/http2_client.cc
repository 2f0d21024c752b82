// A client of HTTP/2 whose server sends anything, in any pieces, or any frames: each call has one
// outcome, bodies and messages of a WebSocket keep to their limits, and nothing is left in the end.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2_frames.h"
#include "input.h"
#include "spate/http/client.h"
#include "spate/http/websocket.h"
#include "spate/loop.h"

namespace spate::fuzz {
namespace {

// The server's first frames: its SETTINGS, which allow WebSockets, and the acknowledgement of ours.
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
  void on_message(http::MessageKind, Bytes bytes) override {
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

// A call with an upload, which is written, paused and cancelled as the input says.
class Caller final : public http::CallHandler {
 public:
  Caller(http::Client& client, Outcomes& outcomes, http::CallOptions options)
      : outcomes_(outcomes), call_(client.send("http://a/", *this, std::move(options))) {
    ++outcomes_.asked;
  }
  void on_body(Bytes) override {
    check(!is_paused_);
    if (pauses_) pause();
  }
  void on_upgraded(const http::Response&, Stream stream) override {
    ++outcomes_.told;
    is_over_ = true;
    stream.write("hello");
  }
  void on_closed(std::error_code) override {
    check(!std::exchange(is_over_, true));
    ++outcomes_.told;
  }

  void act(Input& input) {
    switch (input.below(6)) {
      case 0:
        return pause();
      case 1:
        return resume();
      case 2:
        return void(call_.write(std::string(700, 'x')));
      case 3:
        return void(call_.end());
      case 4:
        if (!std::exchange(is_over_, true)) ++outcomes_.told;
        return call_.cancel();
      default:
        pauses_ = !pauses_;
    }
  }
  void finish() {
    pauses_ = false;
    resume();
    call_.end();
  }

 private:
  void pause() {
    is_paused_ = true;
    call_.pause();
  }
  void resume() {
    is_paused_ = false;
    call_.resume();
  }

  Outcomes& outcomes_;
  bool pauses_ = false;
  bool is_paused_ = false;
  bool is_over_ = false;
  http::Call call_;
};

class Conversation {
 public:
  explicit Conversation(std::uint32_t max_streams) : client_(make_client(max_streams)) { turn(10); }

  void say(std::string_view text) {
    if (!speakers_.empty()) speakers_.back()->say(text);
    turn();
  }
  // Acts on one call, or starts another.
  void act(Input& input) {
    const std::size_t chosen = input.below(8);
    if (chosen < callers_.size()) return callers_[chosen]->act(input);
    constexpr std::size_t kMostCallers = 6;
    if (callers_.size() == kMostCallers) return;
    http::CallOptions options;
    if (input.flag()) {
      options.upgrade = "talk";
    } else {
      options.method = http::Method::post;
      options.upload = input.flag() ? 1400 : http::kUnknownSize;
      if (input.flag()) options.expect_continue = Nanos{1'000'000};
    }
    callers_.push_back(std::make_unique<Caller>(client_, outcomes_, std::move(options)));
  }
  // Ends all calls, and runs until none is repeated any more.
  void finish() {
    for (const auto& caller : callers_) caller->finish();
    for (int i = 0; i < 20 && outcomes_.told < outcomes_.asked; ++i) {
      for (std::size_t each = 0; each < speakers_.size(); ++each) speakers_[each]->end();
      turn(10);
    }
    check(outcomes_.told == outcomes_.asked);
    check(client_.metrics().calls == 0);
  }

 private:
  http::Client make_client(std::uint32_t max_streams) {
    http::ClientOptions options{.max_per_origin = 2, .max_head = 512};
    options.http2 = must(http::Http2::create({.max_streams = max_streams, .stream_window = 1024}));
    options.http2_without_tls = true;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(loop()));
      speakers_.push_back(std::make_unique<Speaker>(std::move(theirs)));
      speakers_.back()->say(kBeginning);
      return std::move(mine);
    };
    return must(http::Client::create(loop(), std::move(options)));
  }

  const std::string body_ = std::string(5000, 'x');
  std::vector<std::unique_ptr<Speaker>> speakers_;
  Outcomes outcomes_;
  http::Client client_;
  const std::array<http::Call, 4> calls_ = {
      ask(client_, outcomes_, {}),
      ask(client_, outcomes_, {.method = http::Method::post, .body = bytes_of(body_)}),
      ask(client_, outcomes_, {.decompress = true}),
      ask(client_, outcomes_, {.max_redirects = 2}),
  };
  const Socket socket_{client_, outcomes_};
  std::vector<std::unique_ptr<Caller>> callers_;
};

void converse_by_frames(Input& input) {
  const auto status = [](std::string_view code) { return coded(":status", code); };
  const std::string heads[] = {status("200"), status("100"), status("103"), status("204"),
                               status("304"), status("403"), status("302"), status("051"),
                               status("101"), status("999")};
  const std::string fields[] = {coded("content-length", "5"),
                                coded("content-length", "0"),
                                coded("location", "/b"),
                                coded("content-encoding", "gzip"),
                                coded("sec-websocket-protocol", "x"),
                                coded("x", std::string(100, 'y')),
                                coded("set-cookie", "a=b"),
                                coded("connection", "x"),
                                status("200")};
  Conversation conversation(input.flag() ? 12 : 3);
  Http2FrameMaker frames(input, heads, fields);
  for (int i = 0; i < 60 && !input.empty(); ++i)
    input.below(5) == 0 ? conversation.act(input) : conversation.say(frames.next());
  conversation.finish();
}

void converse_by_bytes(std::string_view script, std::size_t step) {
  Conversation conversation(5);
  for (; !script.empty(); script.remove_prefix(std::min(step, script.size())))
    conversation.say(script.substr(0, step));
  conversation.finish();
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  constexpr std::uint8_t kByFrames = 0x80;
  fuzz::Input input(data, std::min<std::size_t>(size, 4096));
  const std::uint8_t first = input.byte();
  if ((first & kByFrames) != 0)
    fuzz::converse_by_frames(input);
  else
    fuzz::converse_by_bytes(input.rest(), 1 + first % 64u);
  return 0;
}
