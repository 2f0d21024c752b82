// Random programs of a server and its clients, of HTTP/1 and HTTP/2, which do everything that
// exchange.h and server.h allow, in and out of callbacks. They check that responses arrive whole,
// in order and unchanged; that bodies arrive unchanged; that no callback comes after the last one,
// or after an exchange was released; and that nothing is left in the end.
//
// SPATE_SEED=<number> runs one alone, SPATE_SEEDS=<number> sets how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/harness.h"
#include "http/http2_client.h"
#include "http/random_handlings.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Method;
using http::Status;

using Expected = ExpectedAnswer;

class World;

// Sends requests, and reads the responses.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void ask() = 0;
  virtual void send_some(std::size_t most) = 0;
  virtual void end() = 0;
  virtual bool is_busy() const = 0;
  virtual Stream& stream() = 0;

  void abort() { stream().abort(); }
  void toggle() { stream().is_paused() ? stream().resume() : stream().pause(); }
};

class Http1Peer final : public Peer, public StreamHandler {
 public:
  Http1Peer(World& world, Stream stream) : world_(world), stream_(std::move(stream)) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

  void ask() override;
  void send_some(std::size_t most) override;
  void end() override {
    if (unsent_.empty()) stream_.end();
  }
  bool is_busy() const override { return unsent_.size() > 100'000; }
  Stream& stream() override { return stream_; }

  std::size_t on_data(Bytes bytes) override;
  void on_end() override { is_ended_ = true; }
  void on_closed(std::error_code) override { is_ended_ = true; }

 private:
  std::size_t read_head(Bytes bytes);
  std::size_t read_body(Bytes bytes);
  void end_answer();

  World& world_;
  Stream stream_;
  std::string unsent_;
  std::vector<std::size_t> asked_;  // Requests without a response.
  http::ResponseHead head_;
  http::Framing framing_;
  http::ChunkedDecoder chunks_;
  Fields trailers_;
  std::uint64_t left_ = 0;
  std::string body_;
  bool is_in_body_ = false;
  bool is_numbered_ = false;  // A handler's response, not the server's own.
  bool is_last_ = false;
  bool is_ended_ = false;
};

// Makes requests on several streams, and delays window updates.
class Http2Peer final : public Peer {
 public:
  Http2Peer(World& world, Stream stream);

  void ask() override;
  void send_some(std::size_t most) override;
  void end() override { client_.stream().end(); }
  bool is_busy() const override { return asked_.size() > 12; }
  Stream& stream() override { return client_.stream(); }

 private:
  struct Asked {
    std::size_t number;
    std::size_t sent = 0;      // Bytes of the body.
    std::size_t credited = 0;  // Bytes of the response.
  };
  void check(const Http2Client::Answer& answer, const Asked& asked);

  World& world_;
  Http2Client client_;
  const bool credits_by_hand_;
  std::map<std::int32_t, Asked> asked_;  // That are not over.
};

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) { make_server(); }
  ~World() {
    peers_.clear();
    handlings.forget_all();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    settle();
  }

 private:
  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));

 public:
  Random random;
  Handlings handlings{random, *loop_, [this] { act_on_server(); }};

 private:
  void make_server() {
    http::ServerOptions options;
    options.http2 = must(http::Http2::create({.stream_window = 4096}));
    if (random.one_in(4)) options.max_requests = 1 + random.below(4);
    if (random.one_in(6)) options.max_body = random.below(kMostBody);
    options.log = [this](const http::AccessRecord& record) {
      ++logged_;
      EXPECT_LE(record.sent, 10'000'000u);
      if (random.one_in(8)) act_on_server();
    };
    server_ = must(http::Server::create(
        *loop_, [this](Exchange exchange) { handlings.on_request(std::move(exchange)); },
        std::move(options)));
    is_draining_ = false;
  }

  void act_on_server() {
    if (random.one_in(60)) {
      handlings.silence();
      server_ = {};
      make_server();
    } else if (random.one_in(60) && !is_draining_) {
      is_draining_ = true;
      server_.drain(Nanos{random.span(20'000'000'000)}, [this] { ++drained_; });
    }
  }

  void step() {
    switch (random.below(10)) {
      case 0:
        if (peers_.size() < 4) connect();
        return;
      case 1:
      case 2:
        return with_peer([](Peer& peer) {
          if (!peer.is_busy()) peer.ask();
        });
      case 3:
      case 4:
        return with_peer([this](Peer& peer) { peer.send_some(1 + random.below(9000)); });
      case 5:
        return with_peer([this](Peer& peer) { gone_or_slow(peer); });
      case 6:
        return handlings.act_on_any();
      case 7:
        if (random.one_in(8)) clock_.advance(Nanos{random.span(8'000'000'000)});
        return;
      default:
        loop_->run(Run::no_wait);
    }
  }

  template <class Function>
  void with_peer(Function function) {
    if (!peers_.empty()) function(*peers_[random.below(peers_.size())]);
  }

  void gone_or_slow(Peer& peer) {
    if (random.one_in(3)) return peer.toggle();
    if (random.one_in(8)) return peer.end();
    if (!random.one_in(12)) return;
    peer.abort();
    std::erase_if(peers_, [&](const auto& each) { return each.get() == &peer; });
  }

  void connect() {
    auto [mine, theirs] = must(Stream::memory_pair(*loop_));
    server_.add(std::move(theirs));
    if (random.one_in(2)) {
      peers_.push_back(std::make_unique<Http1Peer>(*this, std::move(mine)));
    } else {
      peers_.push_back(std::make_unique<Http2Peer>(*this, std::move(mine)));
    }
  }

  // All connections close, and nothing may be left.
  void settle() {
    handlings.begin_to_settle();
    for (const auto& peer : peers_) peer->abort();
    pass_minutes();
    handlings.let_all_go();
    pass_minutes();
    EXPECT_EQ(server_.metrics().connections, 0u);
    EXPECT_EQ(server_.metrics().exchanges, 0u);
    handlings.expect_over();
  }

  void pass_minutes() {
    for (int i = 0; i < 100; ++i) {
      clock_.advance(Nanos{2'000'000'000});
      for (int turn = 0; turn < 5; ++turn) loop_->run(Run::no_wait);
    }
  }

  http::Server server_;
  std::vector<std::unique_ptr<Peer>> peers_;
  int logged_ = 0;
  int drained_ = 0;
  bool is_draining_ = false;
};

// ---- a handling

// ---- a peer of HTTP/1

void Http1Peer::ask() {
  const auto [number, added] = world_.handlings.add();
  Expected& expected = *added;
  Random& random = world_.random;
  const bool has_body = random.one_in(2);
  expected.method = has_body ? Method::post : random.one_in(5) ? Method::head : Method::get;
  asked_.push_back(number);
  unsent_ += std::string(name_of(expected.method)) + " /" + std::to_string(number) +
             " HTTP/1.1\r\nHost: a\r\n";
  if (random.one_in(20)) unsent_ += "Connection: close\r\n";
  if (!has_body) {
    unsent_ += "\r\n";
    return;
  }
  const std::size_t size = random.below(random.one_in(4) ? kMostBody : 200);
  expected.body = letters(number, size);
  if (random.one_in(2)) {
    unsent_ += "Content-Length: " + std::to_string(size) + "\r\n\r\n" + expected.body;
    return;
  }
  unsent_ += "Transfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < size;) {
    const std::size_t part = std::min(size - at, 1 + random.below(5000));
    unsent_ +=
        std::string(http::ChunkHeader(part).text()) + expected.body.substr(at, part) + "\r\n";
    at += part;
  }
  unsent_ += "0\r\n\r\n";
}

void Http1Peer::send_some(std::size_t most) {
  const std::size_t size = std::min(most, unsent_.size());
  if (stream_.queued() < 200'000 && stream_.write(std::string_view(unsent_).substr(0, size)))
    unsent_.erase(0, size);
}

std::size_t Http1Peer::on_data(Bytes bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    const std::size_t count =
        is_in_body_ ? read_body(bytes.subspan(used)) : read_head(bytes.subspan(used));
    used += count;
    if (count == 0) break;
  }
  return used;
}

std::size_t Http1Peer::read_head(Bytes bytes) {
  EXPECT_FALSE(is_last_) << "an answer behind the last";
  const http::Parsed parsed = parse_response(bytes, 0, {}, head_);
  if (parsed.state == http::Parsed::State::unfinished) return 0;
  EXPECT_EQ(parsed.state, http::Parsed::State::whole) << text_of(bytes).substr(0, 200);
  if (parsed.state != http::Parsed::State::whole) return bytes.size();
  EXPECT_FALSE(asked_.empty()) << "an answer to nothing";
  if (asked_.empty()) return bytes.size();
  if (is_informational(head_.status)) return head_.size;
  const std::size_t number = asked_.front();
  EXPECT_FALSE(frame_response(head_, world_.handlings.expected[number].method, framing_)) << number;
  const std::string_view said = head_.fields["X-Number"];
  is_numbered_ = !said.empty();
  if (is_numbered_) EXPECT_EQ(said, std::to_string(number));
  is_last_ = !framing_.keeps_alive;
  is_in_body_ = true;
  left_ = framing_.size;
  chunks_ = {};
  body_.clear();
  const std::size_t size = head_.size;
  if (framing_.body == http::BodyKind::none) end_answer();
  return size;
}

std::size_t Http1Peer::read_body(Bytes bytes) {
  if (framing_.body == http::BodyKind::sized) {
    const Bytes piece = bytes.first(std::min<std::uint64_t>(bytes.size(), left_));
    body_ += text_of(piece);
    left_ -= piece.size();
    if (left_ == 0) end_answer();
    return piece.size();
  }
  const auto step = chunks_.next(bytes, trailers_);
  EXPECT_NE(step.state, http::ChunkedDecoder::State::broken);
  if (step.state == http::ChunkedDecoder::State::broken) return bytes.size();
  body_ += text_of(step.data);
  chunks_.take(step.data.size());
  if (step.state == http::ChunkedDecoder::State::end) end_answer();
  return step.used + step.data.size();
}

void Http1Peer::end_answer() {
  is_in_body_ = false;
  const std::size_t number = asked_.front();
  asked_.erase(asked_.begin());
  if (!is_numbered_) return;
  const Expected& expected = world_.handlings.expected[number];
  if (framing_.body == http::BodyKind::chunked) EXPECT_TRUE(expected.is_ended) << number;
  if (expected.method != Method::head) EXPECT_EQ(body_, expected.answer) << number;
}

// ---- a peer of HTTP/2

Http2Peer::Http2Peer(World& world, Stream stream)
    : world_(world),
      client_(std::move(stream), Http2Client::Windows::by_hand),
      credits_by_hand_(world.random.one_in(2)) {}

void Http2Peer::ask() {
  Random& random = world_.random;
  const auto [number, added] = world_.handlings.add();
  Expected& expected = *added;
  const bool has_body = random.one_in(2);
  expected.method = has_body ? Method::post : random.one_in(5) ? Method::head : Method::get;
  Http2Client::Fields more;
  if (has_body) expected.body = letters(number, random.below(random.one_in(4) ? kMostBody : 200));
  if (has_body && random.one_in(2))
    more.emplace_back("content-length", std::to_string(expected.body.size()));
  if (random.one_in(3)) more.emplace_back("priority", "u=" + std::to_string(random.below(8)));
  const std::int32_t id =
      client_.begin(Http2Client::request(std::string(name_of(expected.method)),
                                         "/" + std::to_string(number), std::move(more)),
                    has_body);
  if (id > 0) asked_.emplace(id, Asked{.number = number});
}

// On a random stream: sends some of its body, a window update, or its end.
void Http2Peer::send_some(std::size_t most) {
  Random& random = world_.random;
  std::erase_if(asked_, [this](const auto& each) {
    const auto& answer = client_.answers[each.first];
    if (answer.is_ended) check(answer, each.second);
    return answer.is_closed;
  });
  if (asked_.empty()) return;
  auto& [id, asked] =
      *std::next(asked_.begin(), static_cast<std::ptrdiff_t>(random.below(asked_.size())));
  const std::string_view body = world_.handlings.expected[asked.number].body;
  Http2Client::Answer& answer = client_.answers[id];
  if (!answer.is_finished) {
    const std::string_view piece = body.substr(asked.sent, most);
    asked.sent += piece.size();
    client_.write(id, piece, asked.sent == body.size());
  }
  if (!credits_by_hand_ || random.one_in(3))
    client_.credit(id, answer.body.size() - std::exchange(asked.credited, answer.body.size()));
  if (random.one_in(30)) client_.reset(id);
}

void Http2Peer::check(const Http2Client::Answer& answer, const Asked& asked) {
  if (!answer.fields.contains("x-number")) return;  // The server's own response.
  const Expected& expected = world_.handlings.expected[asked.number];
  EXPECT_EQ(answer.fields.at("x-number"), std::to_string(asked.number));
  if (expected.method == Method::head) return;
  EXPECT_EQ(answer.body, expected.answer) << asked.number;
  const auto length = answer.fields.find("content-length");
  if (length == answer.fields.end()) EXPECT_TRUE(expected.is_ended) << asked.number;
}

class RandomHttp : public ::testing::TestWithParam<int> {};

TEST_P(RandomHttp, KeepsInvariants) {
  for (const std::uint64_t seed : seeds(250)) {
    World(seed * 8 + static_cast<std::uint64_t>(GetParam())).run(700);
    ASSERT_FALSE(HasFailure()) << "SPATE_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomHttp, ::testing::Range(0, 4));

}  // namespace
}  // namespace spate::testing
