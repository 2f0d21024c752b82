// Random programs of WebSockets that talk to each other, which do everything that websocket.h and
// topic.h allow, in and out of callbacks. They check that messages arrive whole, in order and
// unchanged; that all messages sent before a close frame arrive before it; that no callback comes
// after the last one, or after the WebSocket was released; that a drain is done when its server has
// none left, and within its grace; and that everything ends. Some run while memory is short and
// bytes arrive one by one.
//
// SPATE_SEED=<number> runs one alone, SPATE_SEEDS=<number> sets how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "http/harness.h"
#include "spate/http/client.h"
#include "spate/http/topic.h"
#include "spate/http/websocket.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using http::CloseCode;
using http::MessageKind;
using http::MessageView;
using http::WebSocket;
using http::WebSocketCompression;
using http::WebSocketOptions;

constexpr std::size_t kTopics = 2;

class WebSocketProgram;

// One end of a WebSocket.
class WebSocketEnd final : public http::WebSocketHandler {
 public:
  explicit WebSocketEnd(WebSocketProgram& program) : program_(program) {}

  void on_open() override;
  void on_message(MessageKind kind, Bytes bytes) override;
  void on_part(MessageKind kind, Bytes bytes, bool is_last) override;
  void on_pong(Bytes bytes) override;
  void on_drained() override;
  void on_closed(CloseCode code, std::string_view reason, std::error_code error) override;

  void do_something();
  void note_published(const std::string& text, bool is_doubtful);
  bool has_sent_nothing_for_sure() const {
    return std::ranges::all_of(sent_, [](const Sent& each) { return each.is_doubtful; });
  }
  bool is_done() const { return is_told_ || is_silent_; }

  // Its server drains.
  void note_drain() { has_said_bye_ = has_said_bye_ || !socket.is_writable(); }

  WebSocket socket;
  WebSocketEnd* other = nullptr;
  int server = -1;  // The server that accepted it.

 private:
  struct Sent {
    std::string message;
    bool is_doubtful = false;
  };

  void check_may_be_told();
  void receive(const std::string& message);
  void send(std::size_t size);
  void send_part(std::size_t size);
  void close();
  void move_socket();
  void note_sent(MessageKind kind, std::string message);

  WebSocketProgram& program_;
  std::deque<Sent> sent_;  // Messages that the other end has not received yet.
  std::string part_received_;
  std::string part_sent_;
  MessageKind part_kind_ = MessageKind::text;
  bool is_in_part_ = false;
  bool is_told_ = false;    // on_closed().
  bool is_silent_ = false;  // It was released.
  bool has_said_bye_ = false;
};

class WebSocketProgram {
 public:
  explicit WebSocketProgram(std::uint64_t seed) : random(seed), is_scarce_(seed % 4 == 3) {
    make_server();
    http::ClientOptions options;
    options.open = [this](std::string_view, std::uint16_t) { return open(); };
    options.max_per_origin = 64;
    client_ = must(http::Client::create(*loop, std::move(options)));
    for (auto& topic : topics) topic.emplace();
    for (WebSocketOptions& each : kinds_) each = random_options();
  }

  void run(int steps) {
    std::optional<FaultPlan> plan;
    std::optional<FaultScope> scope;
    if (is_scarce_) {
      plan.emplace();
      plan->fail_share(SystemCall::allocate, 0.02, ENOMEM, random.next());
      plan->shorten_share(SystemCall::receive, 0.5, 3, random.next());
      plan->shorten_share(SystemCall::send, 0.5, 5, random.next());
      scope.emplace(*plan);
    }
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    scope.reset();
    settle();
  }

  void publish(std::size_t size);
  // Inside callbacks as well.
  void something_else(WebSocketEnd& end);

  Random random;
  ScriptedClock clock;
  std::unique_ptr<Loop> loop = must(Loop::create({.clock = &clock}));
  std::array<std::optional<http::Topic>, kTopics> topics;
  int depth = 0;
  bool is_settling = false;
  std::vector<std::unique_ptr<WebSocketEnd>> ends;

 private:
  WebSocketOptions random_options();
  Result<Stream> open();
  void accept(http::Exchange exchange);
  void connect();
  void make_server();
  void drain();
  void on_drained();
  void pass(Nanos time);
  void step();
  void turns(int count) {
    for (int i = 0; i < count; ++i) loop->run(Run::no_wait);
  }
  void settle();
  // Returns one of the last, since most of the others are closed.
  WebSocketEnd& newest() {
    return *ends[ends.size() - 1 - random.below(std::min<std::size_t>(ends.size(), 12))];
  }

  std::array<WebSocketOptions, 3> kinds_;
  http::Server server_;
  int server_number_ = 0;
  bool is_draining_ = false;
  Nanos drained_by_{0};
  http::Client client_;
  const bool is_scarce_;
};

// ---- WebSocketEnd

std::string described(MessageKind kind, std::string_view text) {
  return (kind == MessageKind::text ? "t" : "b") + std::string(text);
}

void WebSocketEnd::check_may_be_told() {
  ASSERT_FALSE(is_told_) << "behind the last call";
  ASSERT_FALSE(is_silent_) << "after it has let go";
}

void WebSocketEnd::on_open() {
  check_may_be_told();
  program_.something_else(*this);
}

void WebSocketEnd::on_message(MessageKind kind, Bytes bytes) {
  check_may_be_told();
  const std::string message = described(kind, text_of(bytes));
  receive(message);
  program_.something_else(*this);
  EXPECT_EQ(message, described(kind, text_of(bytes))) << "the view has changed";
}

void WebSocketEnd::on_part(MessageKind kind, Bytes bytes, bool is_last) {
  check_may_be_told();
  EXPECT_TRUE(is_last || !bytes.empty());
  part_received_.append(text_of(bytes));
  if (is_last) receive(described(kind, std::exchange(part_received_, {})));
  program_.something_else(*this);
}

void WebSocketEnd::receive(const std::string& message) {
  ASSERT_FALSE(has_said_bye_) << "a message behind its goodbye";
  ASSERT_NE(other, nullptr);
  std::deque<Sent>& sent = other->sent_;
  while (!sent.empty() && sent.front().is_doubtful && sent.front().message != message)
    sent.pop_front();
  ASSERT_FALSE(sent.empty()) << "a message that was not sent";
  ASSERT_EQ(sent.front().message, message);
  sent.pop_front();
}

void WebSocketEnd::on_pong(Bytes) {
  check_may_be_told();
  program_.something_else(*this);
}

void WebSocketEnd::on_drained() {
  check_may_be_told();
  program_.something_else(*this);
}

void WebSocketEnd::on_closed(CloseCode code, std::string_view reason, std::error_code error) {
  check_may_be_told();
  is_told_ = true;
  EXPECT_FALSE(socket.is_writable());
  EXPECT_TRUE(reason.empty() || reason == "bye");
  EXPECT_EQ(code == CloseCode::abnormal, static_cast<bool>(error));
  if (code != CloseCode::abnormal && !has_said_bye_)
    EXPECT_TRUE(other->has_sent_nothing_for_sure()) << "lost before a goodbye";
  program_.something_else(*this);
}

void WebSocketEnd::note_sent(MessageKind kind, std::string message) {
  sent_.push_back({described(kind, message)});
}

// It may have received this from a topic.
void WebSocketEnd::note_published(const std::string& text, bool is_doubtful) {
  sent_.push_back({described(MessageKind::text, text), is_doubtful});
}

void WebSocketEnd::send(std::size_t size) {
  const MessageKind kind = program_.random.one_in(2) ? MessageKind::text : MessageKind::binary;
  std::string message(size, static_cast<char>('a' + program_.random.below(26)));
  if (size > 4 && program_.random.one_in(2)) message.replace(size / 2, 2, "\u00e9");
  const bool was_in_part = is_in_part_;
  bool is_sent = false;
  if (program_.random.one_in(3)) {
    Buffer buffer;
    if (!buffer.append(message)) return;
    is_sent = socket.send(kind, std::move(buffer));
    EXPECT_EQ(buffer.size(), is_sent ? 0 : size);
  } else {
    is_sent = socket.send(kind, bytes_of(message));
  }
  EXPECT_FALSE(is_sent && was_in_part);
  if (is_sent) note_sent(kind, std::move(message));
}

void WebSocketEnd::send_part(std::size_t size) {
  const bool is_last = program_.random.one_in(2);
  if (!is_in_part_)
    part_kind_ = program_.random.one_in(2) ? MessageKind::text : MessageKind::binary;
  const std::string part(size, static_cast<char>('A' + program_.random.below(26)));
  if (!socket.send_part(part_kind_, bytes_of(part), is_last)) return;
  part_sent_ += part;
  is_in_part_ = !is_last;
  if (is_last) note_sent(part_kind_, std::exchange(part_sent_, {}));
}

void WebSocketEnd::close() {
  if (!socket.is_writable()) return;
  Random& random = program_.random;
  socket.close(random.one_in(2) ? CloseCode::normal : CloseCode{4000},
               random.one_in(2) ? "bye" : "");
  has_said_bye_ = !socket.is_writable();
}

void WebSocketEnd::move_socket() {
  WebSocket moved = std::move(socket);
  EXPECT_FALSE(socket.is_open());
  socket = std::move(moved);
}

void WebSocketEnd::do_something() {
  Random& random = program_.random;
  const std::size_t size = random.one_in(12) ? random.below(70'000) : random.below(200);
  switch (random.below(program_.is_settling ? 6 : 26)) {
    case 0:
    case 1:
    case 2:
      return send(size);
    case 3:
      return send_part(size);
    case 4:
      static_cast<void>(socket.ping(bytes_of("p")));
      return;
    case 5:
      return socket.resume();
    case 6:
    case 7:
      return socket.pause();
    case 8:
    case 9:
    case 10:
    case 11:
      return send(size);
    case 12:
      return close();
    case 13:
      if (!random.one_in(3)) return;
      is_silent_ = true;
      return socket.abort();
    case 14:
      if (!random.one_in(3)) return;
      is_silent_ = true;
      socket = {};
      return;
    case 15:
    case 16:
      if (auto& topic = program_.topics[random.below(kTopics)])
        EXPECT_TRUE(!topic->subscribe(socket) || topic->has(socket));
      return;
    case 17:
      if (auto& topic = program_.topics[random.below(kTopics)]) topic->unsubscribe(socket);
      return;
    case 18:
      return move_socket();
    case 19:
      return program_.publish(size);
    default:
      return;
  }
}

// ---- WebSocketProgram

// Some subscribers may lack room; publish() returns only how many had it.
void WebSocketProgram::publish(std::size_t size) {
  auto& topic = topics[random.below(kTopics)];
  if (!topic) return;
  const std::string text(size, static_cast<char>('0' + random.below(10)));
  std::vector<WebSocketEnd*> subscribers;
  for (const auto& end : ends) {
    if (topic->has(end->socket)) subscribers.push_back(end.get());
  }
  ASSERT_EQ(topic->size(), subscribers.size());
  const std::size_t count = topic->publish(text);
  for (WebSocketEnd* each : subscribers) each->note_published(text, count < subscribers.size());
}

WebSocketOptions WebSocketProgram::random_options() {
  WebSocketOptions options;
  options.max_message = 1 << 24;
  if (random.one_in(2)) options.view = MessageView::parts;
  if (random.one_in(2)) options.compression = WebSocketCompression::each_message;
  options.ping_after = Nanos{random.span(3'000'000'000)};
  options.limits.low = 100;
  options.limits.high = 1 + 100 + random.below(5'000);
  options.limits.max = 80'000 + random.below(1'000'000);
  if (random.one_in(2)) options.limits.when_full = WhenFull::drop;
  return options;
}

Result<Stream> WebSocketProgram::open() {
  auto pair = random.one_in(2) ? Stream::memory_pair(*loop) : Stream::socket_pair(*loop);
  if (!pair) return std::unexpected(pair.error());
  server_.add(std::move(pair->second));
  return std::move(pair->first);
}

// Requests arrive in the order in which they were made: each has its number.
void WebSocketProgram::accept(http::Exchange exchange) {
  const std::size_t number = std::stoul(std::string(exchange.request().path().substr(1)));
  WebSocketEnd& client = *ends[number];
  auto end = std::make_unique<WebSocketEnd>(*this);
  auto socket = WebSocket::accept(std::move(exchange), *end, kinds_[random.below(kinds_.size())]);
  EXPECT_FALSE(socket && is_draining_);
  if (!socket) return;
  end->socket = std::move(*socket);
  end->server = server_number_;
  end->other = &client;
  client.other = end.get();
  ends.push_back(std::move(end));
}

void WebSocketProgram::make_server() {
  auto server =
      http::Server::create(*loop, [this](http::Exchange exchange) { accept(std::move(exchange)); });
  if (!server) return;
  server_ = std::move(*server);
  ++server_number_;
  is_draining_ = false;
}

void WebSocketProgram::drain() {
  if (is_draining_) return;
  is_draining_ = true;
  const Nanos grace{random.span(4'000'000'000)};
  drained_by_ = loop->now() + grace;
  server_.drain(grace, [this] { on_drained(); });
  for (const auto& end : ends) {
    if (end->server == server_number_) end->note_drain();
  }
}

void WebSocketProgram::on_drained() {
  for (const auto& end : ends)
    EXPECT_TRUE(end->server != server_number_ || end->is_done() || !end->socket.is_open());
  if (!is_settling) make_server();
}

void WebSocketProgram::pass(Nanos time) {
  clock.advance(time);
  if (!is_draining_ || is_scarce_ || clock.monotonic() <= drained_by_) return;
  const int draining = server_number_;
  turns(4);
  EXPECT_FALSE(is_draining_ && server_number_ == draining) << "the grace is over";
}

void WebSocketProgram::connect() {
  auto end = std::make_unique<WebSocketEnd>(*this);
  const std::string url = "ws://a/" + std::to_string(ends.size());
  auto socket = WebSocket::connect(client_, url, *end, kinds_[random.below(kinds_.size())]);
  if (!socket) return;
  end->socket = std::move(*socket);
  ends.push_back(std::move(end));
}

void WebSocketProgram::step() {
  const std::size_t choice = random.below(20);
  if (choice == 0 && ends.size() < 48) return connect();
  if (choice == 1) return pass(Nanos{random.span(1'500'000'000)});
  if (choice == 9 && random.one_in(40)) return drain();
  if (choice == 9 && random.one_in(80)) return make_server();
  if (choice < 8 || ends.empty()) return turns(1 + static_cast<int>(random.below(4)));
  if (choice == 8 && random.one_in(10)) {
    auto& topic = topics[random.below(kTopics)];
    topic ? topic.reset() : static_cast<void>(topic.emplace());
    return;
  }
  newest().do_something();
}

void WebSocketProgram::something_else(WebSocketEnd& end) {
  if (depth >= 3 || is_settling || ::testing::Test::HasFailure()) return;
  ++depth;
  if (random.one_in(3)) end.do_something();
  if (random.one_in(6)) newest().do_something();
  if (random.one_in(20)) turns(1);
  if (random.one_in(400)) drain();
  if (random.one_in(1000)) make_server();
  --depth;
}

// All ends read everything, and then close.
void WebSocketProgram::settle() {
  is_settling = true;
  for (int i = 0; i < 300; ++i) {
    for (std::size_t at = 0; at < ends.size(); ++at) ends[at]->socket.resume();
    turns(3);
  }
  for (int round = 0; round < 12; ++round) {
    for (std::size_t at = 0; at < ends.size(); ++at) {
      ends[at]->socket.resume();
      ends[at]->socket.close();
    }
    clock.advance(Nanos{3'000'000'000});
    turns(60);
  }
  clock.advance(Nanos{60'000'000'000});
  turns(60);
  for (const auto& end : ends) EXPECT_TRUE(end->is_done());
  for (const auto& topic : topics) EXPECT_TRUE(!topic || topic->size() == 0);
}

TEST(RandomWebSockets, KeepInvariants) {
  for (const std::uint64_t seed : seeds(120)) {
    SCOPED_TRACE(seed);
    WebSocketProgram(seed).run(1500);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace spate::testing
