// A server of HTTP/2 whose client sends anything, in any pieces, or any frames: bodies keep to
// their limit, tunnels echo, and nothing is left in the end.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2_frames.h"
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

  void say(std::string_view text) {
    stream_.write(text);
    for (int turn = 0; turn < 3; ++turn) loop().run(Run::no_wait);
  }
  void end() {
    stream_.end();
    for (int turn = 0; turn < 30; ++turn) loop().run(Run::no_wait);
  }

 private:
  Stream stream_;
};

// The far end of a tunnel; owns itself.
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

// Keeps its exchange, and does with it what the input says. on_closed() is called once for each.
class Keeper final : public http::ExchangeHandler {
 public:
  explicit Keeper(http::Exchange exchange) : exchange_(std::move(exchange)) {
    exchange_.start(*this);
  }
  void on_body(Bytes bytes) override {
    check(!is_over_ && !is_paused_);
    received_ += bytes.size();
  }
  void on_body_end(const http::FieldsView&) override {
    check(!is_over_ && !is_paused_);
    const auto said = exchange_.request().content_length();
    check(!said || *said == received_);
  }
  void on_closed(std::error_code) override { check(!std::exchange(is_over_, true)); }

  void act(Input& input) {
    switch (input.below(9)) {
      case 0:
        is_paused_ = true;
        return exchange_.pause();
      case 1:
        is_paused_ = false;
        return exchange_.resume();
      case 2:
        return void(exchange_.begin(http::Status::ok));
      case 3:
        return void(exchange_.write(std::string(700, 'x')));
      case 4:
        return void(exchange_.end());
      case 5:
        return end_with_trailers();
      case 6:
        return void(exchange_.respond("hello\n"));
      case 7:
        return void(exchange_.inform(http::Status::early_hints));
      default:
        is_over_ = true;
        exchange_ = {};
    }
  }

 private:
  void end_with_trailers() {
    http::Fields fields;
    check(fields.add("x", "y"));
    exchange_.end(std::move(fields));
  }

  http::Exchange exchange_;
  std::size_t received_ = 0;
  bool is_paused_ = false;
  bool is_over_ = false;
};

class Conversation {
 public:
  explicit Conversation(std::uint32_t max_streams) : server_(make_server(max_streams)) {
    auto [mine, theirs] = must(Stream::memory_pair(loop()));
    server_.add(std::move(theirs));
    speaker_ = std::make_unique<Speaker>(std::move(mine));
    speaker_->say(kPreface);
  }

  void say(std::string_view text) { speaker_->say(text); }
  void act(Input& input) {
    if (!keepers_.empty()) keepers_[input.below(keepers_.size())]->act(input);
    for (int turn = 0; turn < 3; ++turn) loop().run(Run::no_wait);
  }
  void finish() {
    keepers_.clear();
    speaker_->end();
    check(server_.metrics().exchanges == 0);
    server_ = {};
    for (int turn = 0; turn < 3; ++turn) loop().run(Run::no_wait);
  }

 private:
  http::Server make_server(std::uint32_t max_streams) {
    http::ServerOptions options{.max_head = 512, .max_fields = 10};
    options.http2 = must(http::Http2::create({.max_streams = max_streams, .stream_window = 1024}));
    return must(http::Server::create(
        loop(), [this](http::Exchange exchange) { take(std::move(exchange)); },
        std::move(options)));
  }
  void take(http::Exchange exchange) {
    if (exchange.request().path() != "/kept") return answer(std::move(exchange));
    keepers_.push_back(std::make_unique<Keeper>(std::move(exchange)));
  }

  http::Server server_;
  std::vector<std::unique_ptr<Keeper>> keepers_;
  std::unique_ptr<Speaker> speaker_;
};

std::string head_of(std::string_view method, std::string_view path,
                    std::string_view scheme = "http") {
  return coded(":method", method) + coded(":scheme", scheme) + coded(":authority", "a") +
         coded(":path", path);
}

void converse_by_frames(Input& input) {
  const std::string tunnel = head_of("CONNECT", "/") + coded(":protocol", "talk");
  const std::string heads[] = {head_of("GET", "/"),
                               head_of("POST", "/"),
                               head_of("POST", "/kept"),
                               head_of("GET", "/kept"),
                               head_of("HEAD", "/kept"),
                               tunnel,
                               coded(":method", "CONNECT") + coded(":authority", "a:80"),
                               head_of("GET", "http://b/kept", "x"),
                               head_of("CONNECT", "/kept") + coded(":protocol", "talk")};
  const std::string fields[] = {
      coded("content-length", "5"), coded("content-length", "0"), coded("expect", "100-continue"),
      coded("priority", "u=0, i"),  coded("cookie", "a=b"),       coded("x", std::string(100, 'y')),
      coded("host", "b"),           coded("connection", "x"),     coded(":path", "/b")};
  Conversation conversation(input.flag() ? 8 : 2);
  Http2FrameMaker frames(input, heads, fields);
  for (int i = 0; i < 60 && !input.empty(); ++i)
    input.below(4) == 0 ? conversation.act(input) : conversation.say(frames.next());
  conversation.finish();
}

void converse_by_bytes(std::string_view script, std::size_t step) {
  Conversation conversation(8);
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
