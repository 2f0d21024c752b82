// WebSockets in Worlds with all kinds of faults: an echo, and topics whose readers are slow.
// Messages arrive whole and in order. A slow subscriber misses some, or is closed, as its options
// say.
#include <gtest/gtest.h>

#include <charconv>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/topic.h"
#include "spate/http/websocket.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using http::CloseCode;
using http::MessageKind;
using http::WebSocket;
using http::WebSocketOptions;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kSocketPort = 7009;
constexpr Nanos kSocketTrouble = 1min;

enum class SocketMistake : std::uint8_t { none, tells_the_news_twice };

struct SocketPlan {
  World& world;
  WebSocketOptions options;
  std::size_t padding = 0;  // Of each published message.
  bool may_drop = false;
  SocketMistake mistake = SocketMistake::none;
};

SocketPlan drawn_sockets(World& world, SocketMistake mistake) {
  SocketPlan plan{.world = world,
                  .options = {},
                  .padding = world.draw(2) == 0 ? 300u : 12'000u,
                  .may_drop = world.draw(2) == 0,
                  .mistake = mistake};
  plan.options.ping_after = 2s + drawn_span(world, 10s);
  plan.options.close_timeout = 1s + drawn_span(world, 5s);
  plan.options.limits = {.low = 2'000, .high = 4'000, .max = 20'000};
  if (plan.may_drop) plan.options.limits.when_full = WhenFull::drop;
  if (world.draw(3) == 0) plan.options.compression = http::WebSocketCompression::each_message;
  return plan;
}

// ---- the server

class Office;

class Desk final : public http::WebSocketHandler {
 public:
  Desk(http::Exchange exchange, const WebSocketOptions& options) {
    auto accepted = WebSocket::accept(std::move(exchange), *this, options);
    is_over_ = !accepted;
    if (accepted) socket_ = std::move(*accepted);
  }
  void on_message(MessageKind kind, Bytes bytes) override {
    sim::always(!is_over_, "nothing comes behind the last call");
    socket_.send(kind, bytes);
  }
  void on_closed(CloseCode, std::string_view, std::error_code error) override {
    sim::always(!std::exchange(is_over_, true), "there is one last call");
    sim::sometimes(error == Error::idle_timeout, "who does not answer pings is given up");
    sim::sometimes(error == Error::queue_full, "who is too slow is given up");
  }
  bool is_over() const { return is_over_; }
  const WebSocket& socket() const { return socket_; }

 private:
  WebSocket socket_;
  bool is_over_ = false;
};

class Office {
 public:
  Office(SocketPlan& plan, Loop& loop)
      : plan_(plan),
        epoch_(static_cast<std::uint64_t>(plan.world.now().count())),
        next_(loop, [this] { publish(); }) {
    auto server = http::serve(loop, Address::any_ipv6(kSocketPort),
                              [this](http::Exchange exchange) { open(std::move(exchange)); });
    if (server) server_ = std::move(*server);
    next_.start(0s);
  }
  Office(const Office&) = delete;
  Office& operator=(const Office&) = delete;

 private:
  void open(http::Exchange exchange) {
    std::erase_if(desks_, [](const auto& desk) { return desk->is_over(); });
    const bool wants_news = exchange.request().path() == "/news";
    desks_.push_back(std::make_unique<Desk>(std::move(exchange), plan_.options));
    if (desks_.back()->is_over() || !wants_news) return;
    sim::always(news_.subscribe(desks_.back()->socket()), "who is there can subscribe");
  }
  void publish() {
    std::string text = std::to_string(epoch_) + ' ' + std::to_string(++number_) + ' ';
    text.append(plan_.world.draw(plan_.padding), '.');
    const std::size_t told = news_.publish(text);
    sim::always(told <= news_.size(), "only those are told who want it");
    if (plan_.mistake == SocketMistake::tells_the_news_twice && number_ % 50 == 0)
      news_.publish(text);
    next_.start(drawn_span(plan_.world, 1s));
  }

  SocketPlan& plan_;
  const std::uint64_t epoch_;
  std::uint64_t number_ = 0;
  std::list<std::unique_ptr<Desk>> desks_;
  http::Topic news_;
  http::Server server_;
  Timer next_;
};

// ---- the clients

// Connects again and again, until it has received enough after the faults are over.
class Socket : public http::WebSocketHandler {
 public:
  Socket(SocketPlan& plan, Loop& loop, const Address& server, std::string_view path)
      : plan_(plan),
        url_("ws://" + server.to_string() + std::string(path)),
        client_(must(http::Client::create(loop, {.connect = {.timeout = 5s}}))),
        next_(loop, [this] { begin(); }) {
    next_.start(drawn_span(plan.world, 5s));
  }
  bool is_done() const { return is_done_; }

  void on_open() override { is_open_ = true; }
  void on_message(MessageKind kind, Bytes bytes) override {
    sim::always(is_open_, "nothing comes before it is open, or when it is over");
    sim::always(kind == MessageKind::text, "a text is a text");
    hear(text_of(bytes));
  }
  void on_closed(CloseCode code, std::string_view, std::error_code error) override {
    sim::always(code != CloseCode::normal || has_closed_ || !is_open_, "nobody else says goodbye");
    sim::always(!is_well() || has_closed_, "nothing ends early when all is well");
    sim::sometimes(error == Error::idle_timeout, "a server falls silent");
    is_done_ = is_well();
    is_open_ = false;
    if (!is_done_) next_.start(1s + drawn_span(world(), 5s));
  }

 protected:
  ~Socket() = default;
  virtual void hear(std::string_view text) = 0;
  virtual void start() = 0;

  World& world() { return plan_.world; }
  const SocketPlan& plan() const { return plan_; }
  WebSocket& socket() { return socket_; }
  bool is_well() const { return began_ > kSocketTrouble + 20s; }
  void close() {
    has_closed_ = true;
    socket_.close();
  }

 private:
  void begin() {
    has_closed_ = is_open_ = false;
    began_ = world().now();
    WebSocketOptions options = plan_.options;
    options.limits = {};
    auto connected = WebSocket::connect(client_, url_, *this, options);
    sim::always(connected.has_value(), "connecting begins");
    socket_ = std::move(*connected);
    start();
  }

  SocketPlan& plan_;
  const std::string url_;
  http::Client client_;
  Nanos began_{0};
  bool is_open_ = false;
  bool has_closed_ = false;
  bool is_done_ = false;
  Timer next_;
  WebSocket socket_;
};

// Sends a message when it has received the echo of the last one.
class Talker final : public Socket {
 public:
  Talker(SocketPlan& plan, Loop& loop, const Address& server)
      : Socket(plan, loop, server, "/echo"), speak_(loop, [this] { speak(); }) {}
  void on_open() override {
    Socket::on_open();
    speak();
  }

 private:
  void start() override { said_ = 0; }
  void speak() {
    text_ = std::to_string(said_++);
    text_.append(world().draw(world().draw(4) == 0 ? 15'000 : 300), ':');
    socket().send(text_);
  }
  void hear(std::string_view text) override {
    sim::always(text == text_, "what is said comes back");
    if (said_ == 10) return close();
    speak_.start(drawn_span(world(), 1s));
  }

  std::string text_;
  int said_ = 0;
  Timer speak_;
};

// Reads published messages, some of them slowly.
class Reader final : public Socket {
 public:
  Reader(SocketPlan& plan, Loop& loop, const Address& server)
      : Socket(plan, loop, server, "/news"), resume_(loop, [this] { socket().resume(); }) {}

 private:
  void start() override {
    last_ = epoch_ = 0;
    heard_ = 0;
  }
  void hear(std::string_view text) override {
    std::uint64_t number = 0;
    std::uint64_t epoch = 0;
    const auto [space, error] = std::from_chars(text.begin(), text.end(), epoch);
    sim::always(error == std::errc(), "news have an epoch");
    std::from_chars(space + 1, text.end(), number);
    sim::always(heard_ == 0 || epoch == epoch_, "one connection is with one server");
    sim::always(heard_ == 0 || number > last_, "news come in order, and once");
    const bool has_gap = heard_ != 0 && number != last_ + 1;
    sim::always(!has_gap || plan().may_drop, "no news are left out");
    sim::sometimes(has_gap, "news are left out for who is slow");
    last_ = number;
    epoch_ = epoch;
    if (++heard_ == 30) return close();
    if (is_well() || world().draw(10) != 0) return;
    socket().pause();
    resume_.start(drawn_span(world(), 1min));
  }

  std::uint64_t epoch_ = 0;
  std::uint64_t last_ = 0;
  int heard_ = 0;
  Timer resume_;
};

void play_sockets(World& world, SocketMistake mistake) {
  SocketPlan plan = drawn_sockets(world, mistake);
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot([&plan](Loop& loop) { return std::make_unique<Office>(plan, loop); });
  draw_weather(world, server, client, kSocketTrouble);
  world.at(kSocketTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto talker = client.run([&](Loop& loop) {
      return std::make_unique<Talker>(plan, loop, server.address(kSocketPort));
    });
    const auto reader = client.run([&](Loop& loop) {
      return std::make_unique<Reader>(plan, loop, server.address(kSocketPort));
    });
    const Outcome end =
        world.run_until([&] { return talker->is_done() && reader->is_done(); }, 30min);
    sim::always(end == Outcome::done, "all is heard in the end");
  }
  world.run_for(2min);
  sim::always(server.open_descriptors() <= 4, "the server leaves nothing open");
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(AMessageOfAWebSocketComesOnceAndInOrder, 800,
            [](World& world) { play_sockets(world, SocketMistake::none); })

TEST(SimSwarmDefects, RepeatedNewsAreDetected) {
  expect_found(20, "news come in order, and once",
               [](World& world) { play_sockets(world, SocketMistake::tells_the_news_twice); });
}

}  // namespace
}  // namespace spate::testing
