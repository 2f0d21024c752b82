// A WebSocketClient in Worlds with all kinds of faults. The server receives its messages in order
// and at most once. Only messages that were passed to a connection which failed are missing.
#include "spate/http/websocket_client.h"

#include <gtest/gtest.h>

#include <charconv>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "spate/http/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using http::CloseCode;
using http::MessageKind;
using http::WebSocket;
using http::WebSocketClient;
using http::WebSocketClientOptions;
using http::WebSocketOptions;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kFeedPort = 7010;
constexpr Nanos kFeedTrouble = 1min;
// By then, pings have ended the connections that the trouble left dead.
constexpr Nanos kFeedWell = 3min;
constexpr Nanos kFeedQuiet = 4min;      // Without reconnect() from then on.
constexpr std::size_t kFrameHead = 14;  // The longest header of a frame.

enum class FeedMistake : std::uint8_t { none, repeats_messages };

// All messages of a World, by number. It survives crashes of the server.
struct FeedLedger {
  struct Message {
    std::string text;
    bool is_accepted = false;
  };
  std::uint64_t size() const { return messages.size(); }

  std::vector<Message> messages;
};

struct FeedPlan {
  bool has_trouble() const { return world.now() < kFeedTrouble; }
  bool is_well() const { return world.now() > kFeedWell; }
  bool is_quiet() const { return world.now() > kFeedQuiet; }

  World& world;
  FeedLedger ledger{};
  FeedMistake mistake = FeedMistake::none;
};

std::optional<std::uint64_t> number_after(std::string_view word, std::string_view text) {
  std::uint64_t number = 0;
  if (!text.starts_with(word)) return {};
  const auto [end, error] =
      std::from_chars(text.data() + word.size(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// ---- the server

// Acknowledges messages, slowly, and ends the connection at random.
class FeedSession final : public http::WebSocketHandler {
 public:
  FeedSession(FeedPlan& plan, http::Exchange exchange)
      : plan_(plan), resume_(exchange.loop(), [this] { socket_.resume(); }) {
    WebSocketOptions options;
    options.ping_after = 2s + drawn_span(plan.world, 10s);
    options.close_timeout = 1s + drawn_span(plan.world, 5s);
    if (plan.world.draw(2) == 0) options.compression = http::WebSocketCompression::each_message;
    auto accepted = WebSocket::accept(std::move(exchange), *this, options);
    is_over_ = !accepted;
    if (accepted) socket_ = std::move(*accepted);
  }
  bool is_over() const { return is_over_; }

 private:
  void on_message(MessageKind kind, Bytes bytes) override {
    sim::always(kind == MessageKind::text, "a text stays a text");
    if (!next_) {
      next_ = number_after("from ", text_of(bytes));
      return sim::always(next_.has_value(), "messages of on_open() are sent first");
    }
    accept(text_of(bytes));
    if (plan_.has_trouble()) trouble();
  }
  void on_closed(CloseCode, std::string_view, std::error_code) override { is_over_ = true; }
  void accept(std::string_view text) {
    auto& messages = plan_.ledger.messages;
    const bool is_next = *next_ < messages.size() && messages[*next_].text == text;
    sim::always(is_next, "messages arrive in order and without a gap");
    if (!is_next) return;
    auto& is_accepted = messages[*next_].is_accepted;
    sim::always(!std::exchange(is_accepted, true), "a message arrives at most once");
    socket_.send("ok " + std::to_string((*next_)++));
  }
  void trouble() {
    const std::uint64_t drawn = plan_.world.draw(60);
    if (drawn == 0) socket_.close(CloseCode::going_away, "at random");
    if (drawn == 1) socket_.abort();
    if (drawn == 2) socket_ = WebSocket();
    if (drawn == 1 || drawn == 2) is_over_ = true;
    if (drawn < 3 || drawn > 12) return;
    socket_.pause();
    resume_.start(drawn_span(plan_.world, 20s));
  }

  FeedPlan& plan_;
  std::optional<std::uint64_t> next_;
  bool is_over_ = false;
  Timer resume_;
  WebSocket socket_;
};

class FeedServer {
 public:
  FeedServer(FeedPlan& plan, Loop& loop) : plan_(plan) {
    auto server = http::serve(loop, Address::any_ipv6(kFeedPort),
                              [this](http::Exchange exchange) { open(std::move(exchange)); });
    if (server) server_ = std::move(*server);
  }
  FeedServer(const FeedServer&) = delete;
  FeedServer& operator=(const FeedServer&) = delete;

 private:
  void open(http::Exchange exchange) {
    std::erase_if(sessions_, [](const auto& session) { return session->is_over(); });
    const std::uint64_t drawn = plan_.has_trouble() ? plan_.world.draw(10) : 9;
    if (drawn == 0) return void(exchange.respond(http::Status::service_unavailable));
    if (drawn == 1) return void(unanswered_.push_back(std::move(exchange)));
    sessions_.push_back(std::make_unique<FeedSession>(plan_, std::move(exchange)));
  }

  FeedPlan& plan_;
  std::list<std::unique_ptr<FeedSession>> sessions_;
  std::vector<http::Exchange> unanswered_;
  http::Server server_;
};

// ---- the client

WebSocketClientOptions drawn_feed_options(World& world) {
  WebSocketClientOptions options;
  options.socket.ping_after = 2s + drawn_span(world, 10s);
  options.socket.close_timeout = 1s + drawn_span(world, 5s);
  options.socket.limits = {.low = 2'000, .high = 4'000, .max = 4'100 + world.draw(30'000)};
  if (world.draw(2) == 0) options.socket.limits.when_full = WhenFull::drop;
  if (world.draw(3) == 0) options.socket.compression = http::WebSocketCompression::each_message;
  options.connect_timeout = 1s + drawn_span(world, 10s);
  options.first_delay = drawn_span(world, 1s);
  options.max_delay = 1s + drawn_span(world, 5s);
  options.jitter = static_cast<double>(world.draw(101)) / 100;
  options.steady_after = drawn_span(world, 10s);
  if (world.draw(3) == 0) options.max_failures = static_cast<std::uint32_t>(1 + world.draw(6));
  constexpr std::size_t kWaiting[] = {0, 3'000, 40'000, 1'000'000};
  options.max_waiting = kWaiting[world.draw(4)];
  return options;
}

// Returns all options except `fields`, which cannot be copied.
WebSocketClientOptions copy_of(const WebSocketClientOptions& options) {
  return {.socket = options.socket,
          .connect_timeout = options.connect_timeout,
          .first_delay = options.first_delay,
          .max_delay = options.max_delay,
          .jitter = options.jitter,
          .steady_after = options.steady_after,
          .max_failures = options.max_failures,
          .max_waiting = options.max_waiting};
}

class FeedProgram;

// One WebSocketClient, and a model of it.
class FeedClient final : public http::WebSocketClientHandler {
 public:
  FeedClient(FeedProgram& program, FeedPlan& plan, http::Client& client, const std::string& url)
      : program_(program),
        plan_(plan),
        loop_(client.loop()),
        options_(drawn_feed_options(plan.world)) {
    socket_ = must(WebSocketClient::connect(client, url, *this, copy_of(options_)));
    expect_within(options_.connect_timeout);
  }

  void act();
  // Destroys the WebSocketClient. No callback follows.
  void leave() {
    socket_ = WebSocketClient();
    phase_ = Phase::gone;
  }
  bool is_over() const { return phase_ == Phase::closed; }
  bool is_settled() const {
    return phase_ == Phase::open && socket_.waiting() == 0 && next_ok_ == plan_.ledger.size();
  }

 private:
  enum class Phase : std::uint8_t { down, open, closing, closed, gone };

  World& world() { return plan_.world; }
  void on_open() override;
  void on_message(MessageKind kind, Bytes bytes) override;
  void on_drained() override;
  void on_lost(CloseCode code, std::string_view reason, std::error_code error) override;
  void on_closed(std::error_code error) override;

  void send_some();
  void send(std::string text);
  void check_refused(std::size_t size, bool may_pass, bool had_room, std::size_t waiting);
  void reconnect();
  void close();
  void surprise();

  void expect_within(Nanos span) { due_ = loop_.now() + span + 100ms; }
  void check_time() const { sim::always(loop_.now() <= due_, "no wait exceeds its limit"); }
  // Returns the number of the first message that waits.
  std::uint64_t first_waiting();
  bool has_room_for(std::size_t size) const {
    return socket_.socket().queued() + size <= options_.socket.limits.max;
  }
  bool ends_steady() const {
    return phase_ == Phase::open && loop_.now() - opened_ >= options_.steady_after;
  }

  FeedProgram& program_;
  FeedPlan& plan_;
  Loop& loop_;
  const WebSocketClientOptions options_;
  Phase phase_ = Phase::down;
  Nanos due_{0};  // The next callback comes by then, in the loop's time.
  Nanos opened_{0};
  std::uint32_t failures_ = 0;
  std::deque<std::size_t> waiting_;  // The sizes of the messages that wait.
  std::size_t waiting_bytes_ = 0;
  std::uint64_t next_ok_ = 0;
  bool was_refused_ = false;  // The connection refused a message.
  WebSocketClient socket_;
};

// Uses one WebSocketClient after the other.
class FeedProgram {
 public:
  FeedProgram(FeedPlan& plan, Loop& loop, const Address& server)
      : plan_(plan),
        url_("ws://" + server.to_string() + "/"),
        client_(must(http::Client::create(loop))),
        act_(loop, [this] { act(); }) {
    act_.start(0s);
  }
  FeedProgram(const FeedProgram&) = delete;
  FeedProgram& operator=(const FeedProgram&) = delete;

  bool is_done() const {
    return plan_.is_quiet() && plan_.ledger.size() > *well_from_ + 50 && current_ != nullptr &&
           current_->is_settled();
  }
  // Destroys the WebSocketClient, and its handler too, or keeps that to detect calls.
  void drop() {
    current_->leave();
    if (plan_.world.draw(2) == 0) former_.push_back(std::move(current_));
    current_.reset();
  }
  void check_end() const {
    const auto& messages = plan_.ledger.messages;
    for (std::uint64_t at = *well_from_; at < messages.size(); ++at)
      sim::always(messages[at].is_accepted, "no message is lost when all is well");
  }

 private:
  void act() {
    if (plan_.is_well() && !well_from_) well_from_ = plan_.ledger.size();
    if (current_ != nullptr && current_->is_over()) drop();
    if (current_ == nullptr) {
      current_ = std::make_unique<FeedClient>(*this, plan_, client_, url_);
    } else {
      current_->act();
    }
    act_.start(drawn_span(plan_.world, 2s));
  }

  FeedPlan& plan_;
  const std::string url_;
  std::optional<std::uint64_t> well_from_;  // The first message after the trouble.
  http::Client client_;
  std::vector<std::unique_ptr<FeedClient>> former_;
  std::unique_ptr<FeedClient> current_;
  Timer act_;
};

void FeedClient::act() {
  check_time();
  const std::uint64_t drawn = world().draw(40);
  if (drawn < 2 && phase_ != Phase::closing && !plan_.is_quiet()) reconnect();
  send_some();
  if (drawn == 2 && plan_.has_trouble()) close();
  if (drawn == 3 && plan_.has_trouble()) return program_.drop();
}

std::uint64_t FeedClient::first_waiting() {
  while (phase_ == Phase::open && waiting_bytes_ > socket_.waiting() && !waiting_.empty()) {
    waiting_bytes_ -= waiting_.front();
    waiting_.pop_front();
  }
  sim::always(waiting_bytes_ == socket_.waiting(), "messages leave for an open connection only");
  return plan_.ledger.size() - waiting_.size();
}

void FeedClient::send_some() {
  const bool may_be_long = world().draw(4) == 0;
  for (std::uint64_t left = world().draw(5); left > 0 && !socket_.socket().is_full(); --left) {
    std::string text = std::to_string(plan_.ledger.size()) + ' ';
    text.append(world().draw(may_be_long ? 25'000 : 300), '.');
    // A message that does not fit may end the connection.
    if (plan_.is_well() && !has_room_for(text.size() + kFrameHead)) return;
    send(std::move(text));
  }
}

void FeedClient::send(std::string text) {
  const bool was_open = socket_.is_open();
  const std::size_t size = text.size() + kFrameHead;
  const bool had_room = has_room_for(size);
  const std::size_t before = socket_.waiting();
  first_waiting();
  if (!socket_.send(text)) return check_refused(size, was_open && before == 0, had_room, before);
  sim::always(phase_ != Phase::closing && phase_ != Phase::closed, "nothing is sent after close()");
  plan_.ledger.messages.push_back({.text = std::move(text)});
  const bool waits = !was_open || before != 0;
  sim::always(socket_.waiting() == (waits ? before + size : 0), "a message waits, or is sent");
  sim::always(socket_.waiting() <= options_.max_waiting, "the messages that wait are limited");
  sim::sometimes(waits && was_open, "a message waits behind others in spite of a connection");
  if (!waits) return;
  waiting_.push_back(size);
  waiting_bytes_ += size;
}

void FeedClient::check_refused(std::size_t size, bool may_pass, bool had_room, std::size_t before) {
  const bool is_over = phase_ == Phase::closing || phase_ == Phase::closed;
  sim::always(socket_.waiting() == (is_over ? 0 : before), "a refused message does not wait");
  sim::sometimes(!is_over && may_pass, "the queue of the connection is full");
  sim::sometimes(!is_over && !may_pass, "no more messages may wait");
  const bool may_wait = before + size <= options_.max_waiting && size <= options_.socket.limits.max;
  const bool is_accepted = may_pass ? had_room && socket_.is_open() : may_wait;
  sim::always(is_over || !is_accepted, "a message is refused for want of room");
  was_refused_ = was_refused_ || may_pass;
}

void FeedClient::reconnect() {
  if (ends_steady()) failures_ = 0;
  first_waiting();
  phase_ = Phase::down;
  socket_.reconnect();
  sim::always(!socket_.is_open(), "it is not open when it reconnects");
  sim::always(socket_.failures() == failures_, "failures are counted");
  expect_within(options_.connect_timeout);
}

void FeedClient::close() {
  if (phase_ == Phase::closing) return;
  sim::sometimes(phase_ == Phase::open, "an open connection is closed");
  sim::sometimes(phase_ == Phase::down, "an attempt is cancelled");
  const bool is_open = phase_ == Phase::open;
  phase_ = Phase::closing;
  socket_.close();
  waiting_.clear();
  waiting_bytes_ = 0;
  sim::always(socket_.waiting() == 0, "nothing waits after close()");
  sim::always(!socket_.is_open(), "it is not open after close()");
  // For the close frame of the server, and then for the end of the connection.
  expect_within(is_open ? 2 * options_.socket.close_timeout : 0s);
}

// Everything is allowed in a callback. May destroy this.
void FeedClient::surprise() {
  if (!plan_.has_trouble()) return;
  const std::uint64_t drawn = world().draw(60);
  if (drawn == 0) program_.drop();
  if (drawn == 1) close();
  if (drawn == 2) reconnect();
}

void FeedClient::on_open() {
  sim::always(phase_ == Phase::down, "a connection opens once, and only when it is wanted");
  sim::always(socket_.is_open(), "it is open when it is opened");
  check_time();
  next_ok_ = first_waiting();
  phase_ = Phase::open;
  due_ = kForever;
  opened_ = loop_.now();
  was_refused_ = false;
  sim::sometimes(!waiting_.empty(), "messages wait for a connection");
  std::string greeting = "from " + std::to_string(next_ok_);
  greeting.append(world().draw(2'000), ' ');
  sim::always(socket_.send(greeting), "a new connection has room");
  if (plan_.mistake == FeedMistake::repeats_messages && next_ok_ > 0)
    socket_.send(plan_.ledger.messages[next_ok_ - 1].text);
  surprise();
}

void FeedClient::on_message(MessageKind, Bytes bytes) {
  sim::always(phase_ == Phase::open, "messages arrive on an open connection");
  const auto number = number_after("ok ", text_of(bytes));
  sim::always(number == next_ok_, "messages are acknowledged in order");
  sim::always(next_ok_ < first_waiting(), "a message that waits was not sent");
  ++next_ok_;
  if (world().draw(8) == 0) send_some();
  surprise();
}

void FeedClient::on_drained() {
  sim::always(phase_ == Phase::open, "the queue of an open connection drains");
  sim::always(!socket_.socket().is_full(), "a drained queue is not full");
  sim::sometimes(true, "a queue drains");
  send_some();
  surprise();
}

void FeedClient::on_lost(CloseCode, std::string_view, std::error_code error) {
  sim::always(phase_ == Phase::open || phase_ == Phase::down, "it is lost once");
  sim::always(!socket_.is_open(), "it is not open when it was lost");
  if (phase_ == Phase::down) check_time();
  first_waiting();
  sim::always(error != Error::queue_full || was_refused_, "the messages that wait have room");
  failures_ = ends_steady() ? 0 : failures_ + 1;
  phase_ = Phase::down;
  sim::always(socket_.failures() == failures_, "failures are counted");
  const std::uint32_t doublings = failures_ == 0 ? 0 : failures_ - 1;
  const auto longest = doubled(options_.first_delay, options_.max_delay, doublings);
  const auto shortest = static_cast<double>(longest.count()) * (1 - options_.jitter);
  sim::always(socket_.retry_in() <= longest + 1ms, "the delay has a limit");
  sim::always(socket_.retry_in() + 1ms >= Nanos{static_cast<std::int64_t>(shortest)},
              "the delay grows");
  sim::sometimes(failures_ > 3, "it fails again and again");
  sim::sometimes(error == Error::idle_timeout, "a server does not respond to pings");
  sim::sometimes(error == Error::queue_full, "a server is too slow");
  sim::sometimes(!error, "a server closes");
  expect_within(socket_.retry_in() + options_.connect_timeout);
  if (world().draw(3) == 0) send_some();
  surprise();
}

void FeedClient::on_closed(std::error_code error) {
  const bool was_closing = phase_ == Phase::closing;
  sim::always(phase_ != Phase::closed && phase_ != Phase::gone, "it is closed once");
  if (phase_ != Phase::open) check_time();
  const bool gives_up = failures_ + 1 == options_.max_failures && !ends_steady();
  sim::always(was_closing ? !error : gives_up && error,
              "it ends after close(), or after the last failure");
  sim::sometimes(!was_closing, "it stops after the last failure");
  phase_ = Phase::closed;
  due_ = kForever;
  sim::always(socket_.waiting() == 0 && socket_.retry_in() == 0s, "nothing is left to do");
  socket_.reconnect();
  socket_.close();
  sim::always(!socket_.send("late"), "nothing is sent when it is closed");
  if (world().draw(2) == 0) program_.drop();
}

void play_feed(World& world, FeedMistake mistake) {
  FeedPlan plan{.world = world, .mistake = mistake};
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot([&plan](Loop& loop) { return std::make_unique<FeedServer>(plan, loop); });
  draw_weather(world, server, client, kFeedTrouble);
  world.at(kFeedTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto program = client.run([&](Loop& loop) {
      return std::make_unique<FeedProgram>(plan, loop, server.address(kFeedPort));
    });
    const Outcome end = world.run_until([&] { return program->is_done(); }, 10min);
    sim::always(end == Outcome::done, "all messages are acknowledged in the end");
    if (end == Outcome::done) program->check_end();
  }
  world.run_for(30min);
  sim::always(server.open_descriptors() <= 4, "the server leaves nothing open");
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(WebSocketClientSendsEachMessageOnce, 600,
            [](World& world) { play_feed(world, FeedMistake::none); })

TEST(SimSwarmDefects, RepeatedMessagesOfWebSocketClientAreDetected) {
  expect_found(20, "messages arrive in order and without a gap",
               [](World& world) { play_feed(world, FeedMistake::repeats_messages); });
}

}  // namespace
}  // namespace spate::testing
