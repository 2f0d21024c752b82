// Random programs of clients, a gateway and upstreams: bytes are split at random places, both ends
// are slow, close, or break off, and connections cannot be made. Every request that an upstream
// reads is well-formed, and the one that its client sent; every response that a client reads
// belongs to its request, and is whole unless the connection says otherwise; nothing is left in the
// end.
//
// SPATE_SEED=<number> runs one alone, SPATE_SEEDS=<number> sets how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/loop.h"
#include "support/random.h"
#include "support/scripted.h"
#include "support/seeds.h"

namespace spate::testing {
namespace gateway_random {
namespace {

using http::BodyKind;
using http::Exchange;

// Returns the body of the request with this number. answer_to() has that of the response.
std::string letters(std::size_t number, std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>('a' + (number * 7 + i * 3 + i / 100) % 26);
  return text;
}
std::string answer_to(std::size_t number, std::size_t size) { return letters(number + 13, size); }

std::size_t number_in(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::size_t random_size(Random& random) {
  return random.below(random.one_in(6) ? 200'000 : random.one_in(3) ? 5'000 : 40);
}

// Returns a body as it is sent: sized or in chunks, some with trailers.
std::string framed(const std::string& body, Random& random) {
  if (random.one_in(2)) return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  std::string text = "Transfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t part = std::min(body.size() - at, 1 + random.below(30'000));
    text += std::string(http::ChunkHeader(part).text()) + body.substr(at, part) + "\r\n";
    at += part;
  }
  return text + (random.one_in(3) ? "0\r\nX-Sum: 1\r\n\r\n" : "0\r\n\r\n");
}

// One end of a connection, which parses messages.
class End : public StreamHandler {
 public:
  End(Random& random, Stream stream) : random_(random), stream_(std::move(stream)) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }
  virtual ~End() = default;

  void send_some() {
    const std::size_t size = std::min(unsent_.size(), 1 + random_.below(20'000));
    if (size == 0 || stream_.queued() > 300'000) return;
    if (!stream_.write(std::string_view(unsent_).substr(0, size))) unsent_.clear();
    unsent_.erase(0, std::min(size, unsent_.size()));
    if (unsent_.empty() && ends_behind_) stream_.end();
  }
  void toggle() { stream_.is_paused() ? stream_.resume() : stream_.pause(); }
  void resume() { stream_.resume(); }
  // In a body that lasts until the end, breaking off would look like the end.
  void end() { unsent_.empty() ? stream_.end() : abort(); }
  void abort() {
    stream_.abort();
    is_gone_ = true;
  }
  bool is_gone() const { return is_gone_; }

  std::size_t on_data(Bytes bytes) override {
    std::size_t used = 0;
    while (used < bytes.size()) {
      const std::size_t count =
          is_in_body_ ? read_body(bytes.subspan(used)) : read_head(bytes.subspan(used));
      used += count;
      if (count == 0) break;
    }
    return used;
  }
  void on_end() override {
    if (is_in_body_ && framing_.body == BodyKind::until_end) end_message();
    stream_.close();
  }
  void on_closed(std::error_code) override { is_gone_ = true; }

 protected:
  virtual std::size_t read_head(Bytes bytes) = 0;
  virtual void on_message() = 0;

  // None: any body is right.
  void begin_message(std::optional<std::string> expected) {
    expected_ = std::move(expected);
    body_.clear();
    left_ = framing_.size;
    chunks_ = {};
    is_in_body_ = true;
    if (framing_.body == BodyKind::none) end_message();
  }

  Random& random_;
  http::Framing framing_;
  std::string unsent_;
  bool ends_behind_ = false;  // After the unsent bytes.

 private:
  std::size_t read_body(Bytes bytes) {
    const std::size_t used =
        framing_.body == BodyKind::chunked ? read_chunks(bytes) : read_plainly(bytes);
    if (expected_) EXPECT_TRUE(expected_->starts_with(body_));
    if (is_at_end_) end_message();
    return used;
  }
  std::size_t read_plainly(Bytes bytes) {
    const bool is_sized = framing_.body == BodyKind::sized;
    const Bytes piece =
        is_sized ? bytes.first(std::min<std::uint64_t>(bytes.size(), left_)) : bytes;
    body_ += text_of(piece);
    left_ -= is_sized ? piece.size() : 0;
    is_at_end_ = is_sized && left_ == 0;
    return piece.size();
  }
  std::size_t read_chunks(Bytes bytes) {
    const auto step = chunks_.next(bytes, trailers_);
    EXPECT_NE(step.state, http::ChunkedDecoder::State::broken);
    if (step.state == http::ChunkedDecoder::State::broken) return bytes.size();
    body_ += text_of(step.data);
    chunks_.take(step.data.size());
    is_at_end_ = step.state == http::ChunkedDecoder::State::end;
    return step.used + step.data.size();
  }
  void end_message() {
    is_in_body_ = is_at_end_ = false;
    if (expected_) {
      EXPECT_EQ(body_.size(), expected_->size());
      EXPECT_TRUE(body_ == *expected_);
    }
    on_message();
  }

  Stream stream_;
  http::ChunkedDecoder chunks_;
  http::Fields trailers_;
  std::uint64_t left_ = 0;
  std::optional<std::string> expected_;
  std::string body_;
  bool is_in_body_ = false;
  bool is_at_end_ = false;
  bool is_gone_ = false;
};

class Upstream final : public End {
 public:
  using End::End;

 private:
  std::size_t read_head(Bytes bytes) override {
    http::RequestHead head;
    const http::Parsed parsed = parse_request(bytes, 0, {}, head);
    if (parsed.state == http::Parsed::State::unfinished) return 0;
    EXPECT_EQ(parsed.state, http::Parsed::State::whole) << text_of(bytes).substr(0, 300);
    if (parsed.state != http::Parsed::State::whole) return bytes.size();
    EXPECT_FALSE(frame_request(head, framing_));
    EXPECT_TRUE(unsent_.empty()) << "a request before the answer to the one before";
    const std::string_view target = head.target;  // "/number/size"
    number_ = number_in(target.substr(1));
    is_head_ = head.method == http::Method::head;
    if (framing_.expects_continue && !random_.one_in(3)) unsent_ = "HTTP/1.1 100 Continue\r\n\r\n";
    const std::size_t size = head.size;
    has_answered_ = false;
    if (random_.one_in(12)) answer();
    begin_message(letters(number_, number_in(target.substr(target.rfind('/') + 1))));
    return size;
  }
  void on_message() override {
    if (!has_answered_) answer();
  }

  void answer() {
    has_answered_ = true;
    if (random_.one_in(40)) return;  // Never.
    if (random_.one_in(40)) return abort();
    const std::size_t size = random_size(random_);
    const std::string body = answer_to(number_, size);
    std::string text = random_.one_in(8) ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" : "";
    text += "HTTP/1.1 200 OK\r\nX-Number: " + std::to_string(number_) +
            "\r\nX-Size: " + std::to_string(size) + "\r\n";
    if (is_head_) {
      text += "Content-Length: " + std::to_string(size) + "\r\n\r\n";
    } else if (random_.one_in(8)) {
      text += "Connection: close\r\n\r\n" + body;
      ends_behind_ = true;
    } else {
      text += framed(body, random_);
    }
    if (!ends_behind_) spoil(text);
    unsent_ += text;
  }
  // It breaks off, or is malformed.
  void spoil(std::string& text) {
    if (!random_.one_in(12)) return;
    ends_behind_ = true;
    text.resize(random_.below(text.size()));
    if (random_.one_in(3)) text = "nonsense\r\n\r\n";
  }

  std::size_t number_ = 0;
  bool is_head_ = false;
  bool has_answered_ = false;
};

class Downstream final : public End {
 public:
  Downstream(Random& random, Stream stream, std::size_t& last_number)
      : End(random, std::move(stream)), last_number_(last_number) {}

  void ask() {
    if (unsent_.size() > 400'000) return;
    const std::size_t number = ++last_number_;
    const bool has_body = random_.one_in(2);
    const bool is_head = !has_body && random_.one_in(4);
    const std::size_t size = has_body ? random_size(random_) : 0;
    asked_.push_back({number, is_head});
    unsent_ += has_body ? "POST" : is_head ? "HEAD" : "GET";
    unsent_ += " /" + std::to_string(number) + "/" + std::to_string(size) +
               " HTTP/1.1\r\nHost: a\r\nX-Number: " + std::to_string(number) + "\r\n";
    if (has_body && random_.one_in(5)) unsent_ += "Expect: 100-continue\r\n";
    unsent_ += has_body ? framed(letters(number, size), random_) : "\r\n";
  }

 private:
  struct Asked {
    std::size_t number;
    bool is_head;
  };

  std::size_t read_head(Bytes bytes) override {
    http::ResponseHead head;
    const http::Parsed parsed = parse_response(bytes, 0, {}, head);
    if (parsed.state == http::Parsed::State::unfinished) return 0;
    EXPECT_EQ(parsed.state, http::Parsed::State::whole) << text_of(bytes).substr(0, 300);
    EXPECT_FALSE(asked_.empty()) << "an answer to nothing";
    if (parsed.state != http::Parsed::State::whole || asked_.empty()) return bytes.size();
    if (is_informational(head.status)) return head.size;
    const Asked asked = asked_.front();
    EXPECT_FALSE(
        frame_response(head, asked.is_head ? http::Method::head : http::Method::get, framing_));
    const std::size_t size = head.size;
    if (head.status != http::Status::ok) {  // A response of the gateway, or of the server itself.
      EXPECT_GE(code_of(head.status), 408);
      begin_message({});
      return size;
    }
    EXPECT_EQ(number_in(head.fields["X-Number"]), asked.number);
    const std::string body = answer_to(asked.number, number_in(head.fields["X-Size"]));
    begin_message(asked.is_head ? std::string() : body);
    return size;
  }
  void on_message() override { asked_.erase(asked_.begin()); }

  std::size_t& last_number_;
  std::vector<Asked> asked_;  // Requests without a response.
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    make_server();
    make_gateway();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    settle();
  }

 private:
  void make_server() {
    server_ = must(http::Server::create(
        *loop_, [this](Exchange exchange) { on_request(std::move(exchange)); }));
  }
  void make_gateway() {
    http::GatewayOptions options;
    options.client.max_per_origin = 1 + random_.below(4);
    options.client.open = [this](std::string_view, std::uint16_t) { return open(); };
    if (random_.one_in(2)) options.half_closed = http::HalfClosed::is_answered;
    gateway_ = must(http::Gateway::create(*loop_, std::move(options)));
  }

  void on_request(Exchange exchange) {
    gateway_.forward(std::move(exchange), upstream(), [this](std::error_code) {
      return random_.one_in(3) ? std::string() : upstream();
    });
  }
  std::string upstream() { return random_.one_in(2) ? "http://one" : "http://two"; }
  Result<Stream> open() {
    if (random_.one_in(6)) return std::unexpected(make_error_code(std::errc::host_unreachable));
    auto [mine, theirs] = must(Stream::memory_pair(*loop_));
    upstreams_.push_back(std::make_unique<Upstream>(random_, std::move(theirs)));
    return std::move(mine);
  }

  void step() {
    switch (random_.below(9)) {
      case 0:
        return connect();
      case 1:
        return with(clients_, [](Downstream& client) { client.ask(); });
      case 2:
        return with(clients_, [](Downstream& client) { client.send_some(); });
      case 3:
        return with(upstreams_, [](Upstream& upstream) { upstream.send_some(); });
      case 4:
        return with(clients_, [this](Downstream& client) { gone_or_slow(client); });
      case 5:
        return with(upstreams_, [this](Upstream& upstream) { gone_or_slow(upstream); });
      case 6:
        return rarely();
      default:
        loop_->run(Run::no_wait);
    }
  }
  void connect() {
    std::erase_if(clients_, [](const auto& client) { return client->is_gone(); });
    std::erase_if(upstreams_, [](const auto& upstream) { return upstream->is_gone(); });
    if (clients_.size() >= 5) return;
    auto [mine, theirs] = must(Stream::memory_pair(*loop_));
    server_.add(std::move(theirs));
    clients_.push_back(std::make_unique<Downstream>(random_, std::move(mine), last_number_));
  }
  template <class Ends, class Function>
  void with(Ends& ends, Function function) {
    if (!ends.empty()) function(*ends[random_.below(ends.size())]);
  }
  void gone_or_slow(End& end) {
    if (random_.one_in(3)) return end.toggle();
    if (random_.one_in(20)) return end.end();
    if (random_.one_in(20)) end.abort();
  }
  void rarely() {
    if (random_.one_in(10)) return clock_.advance(Nanos{random_.span(40'000'000'000)});
    if (random_.one_in(100)) return make_server();
    if (random_.one_in(100)) make_gateway();
  }

  // All ends send their remaining bytes, then close.
  void settle() {
    for (int i = 0; i < 400; ++i) {
      for (const auto& client : clients_) talk(*client);
      for (const auto& upstream : upstreams_) talk(*upstream);
      loop_->run(Run::no_wait);
    }
    for (const auto& client : clients_) client->abort();
    for (int i = 0; i < 100; ++i) {
      clock_.advance(Nanos{2'000'000'000});
      loop_->run(Run::no_wait);
    }
    EXPECT_EQ(gateway_.metrics().forwarding, 0u);
    EXPECT_EQ(server_.metrics().exchanges, 0u);
    EXPECT_EQ(server_.metrics().connections, 0u);
  }
  static void talk(End& end) {
    end.resume();
    end.send_some();
  }

  Random random_;
  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));
  http::Server server_;
  http::Gateway gateway_;
  std::vector<std::unique_ptr<Downstream>> clients_;
  std::vector<std::unique_ptr<Upstream>> upstreams_;
  std::size_t last_number_ = 0;
};

class RandomGateway : public ::testing::TestWithParam<int> {};

TEST_P(RandomGateway, KeepsInvariants) {
  for (const std::uint64_t seed : seeds(25)) {
    World(seed * 4 + static_cast<std::uint64_t>(GetParam())).run(3000);
    ASSERT_FALSE(HasFailure()) << "SPATE_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomGateway, ::testing::Range(0, 4));

}  // namespace
}  // namespace gateway_random
}  // namespace spate::testing
