// Random programs of a Client and a Server, of HTTP/1 and HTTP/2, which do whatever client.h,
// call.h, websocket.h, exchange.h and server.h allow, in and out of callbacks, many calls, tunnels
// and WebSockets at once, over connections in memory and over sockets, directly and through a
// Gateway; and what those promise: answers, messages and bytes come as they were given,
// each handler is told things in their order and its end once, and nothing behind it; who lets go
// hears nothing; all comes to an end without a deadline's help once nobody holds it up; nothing is
// left.
//
// SPATE_SEED=<number> does one alone, SPATE_SEEDS=<number> has that many done.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "http/harness.h"
#include "http/random_handlings.h"
#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "spate/http/websocket.h"
#include "support/random.h"
#include "support/seeds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Method;

class PairWorld;

// The user's side of one call.
class Asking final : public http::CallHandler {
 public:
  Asking(PairWorld& world, std::size_t given) : number(given), world_(world) {}

  void on_upload() override;
  void on_informational(http::Status status, const http::FieldsView& fields) override;
  void on_response(const http::Response& response) override;
  void on_body(Bytes bytes) override;
  void on_body_end(const http::FieldsView& trailers) override;
  void on_drained() override;
  void on_upgraded(const http::Response&, Stream) override { ADD_FAILURE() << "not asked for"; }
  void on_closed(std::error_code error) override;

  const std::size_t number;
  std::size_t sent = 0;  // Of an upload.
  bool is_upload = false;
  bool has_ended = false;  // That.
  bool is_paused = false;
  bool is_silent = false;  // Nothing may be told any more.
  bool is_closed = false;

 private:
  enum class Stage { asked, answered, ended };
  void note(const char* what);
  const ExpectedAnswer* answer() const;

  PairWorld& world_;
  Stage stage_ = Stage::asked;
  bool was_upload_told_ = false;
  bool is_sized_ = false;  // The answer's body.
  bool has_body_ended_ = false;
  std::size_t attempt_ = 0;  // The number of what has answered; 0: the server itself.
  Method method_ = Method::get;
  std::string received_;

 public:
  http::Call call;  // Destroyed first.
};

// One end of a WebSocket.
class Talking final : public http::WebSocketHandler {
 public:
  Talking(PairWorld& world, bool is_client) : is_client(is_client), world_(world) {}

  void on_open() override;
  void on_message(Bytes bytes, http::MessageKind kind) override;
  void on_pong(Bytes bytes) override;
  void on_drained() override;
  void on_closed(http::CloseCode code, std::string_view reason, std::error_code error) override;

  const bool is_client;
  std::size_t number = 0;  // That of the other end is the same.
  std::vector<std::string> sent;
  bool is_silent = false;
  bool is_closed = false;

 private:
  void note(const char* what);

  PairWorld& world_;
  std::size_t heard_ = 0;
  bool is_open_ = false;

 public:
  http::WebSocket socket;  // Destroyed first.
};

// One end of a tunnel for bytes; of a client, first the call for it.
class Tunneling final : public http::CallHandler, public StreamHandler {
 public:
  Tunneling(PairWorld& world, bool is_client, std::size_t given)
      : is_client(is_client), number(given), world_(world) {}

  void open(Stream given);

  void on_response(const http::Response& response) override;
  void on_body(Bytes bytes) override;
  void on_upgraded(const http::Response& response, Stream given) override;
  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  const bool is_client;
  std::size_t number;  // That of the other end is the same; 0: there is none.
  bool is_paused = false;
  bool is_silent = false;
  bool is_closed = false;

 private:
  void note(const char* what);

  PairWorld& world_;
  std::string received_;
  bool has_other_ended_ = false;

 public:
  http::Call call;  // Destroyed first, as this.
  Stream stream;
};

class PairWorld {
  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));

 public:
  explicit PairWorld(std::uint64_t seed) : random(seed) {
    make_server();
    if (has_gateway_) make_front();
    make_client();
  }
  ~PairWorld() {
    askings_.clear();
    talkings_.clear();
    tunnelings_.clear();
    handlings.forget_all();
  }

  void run(int steps) {
    SCOPED_TRACE(std::string(has_sockets_ ? "sockets " : "memory ") +
                 (has_gateway_ ? "gateway" : ""));
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    settle();
  }

  // From within any callback.
  void on_call() {
    if (is_settling_ || !random.one_in(2)) return;
    act_anywhere();
  }
  void on_call(Asking& asking) {
    if (is_settling_) return;
    random.one_in(2) ? act(asking) : on_call();
  }
  void on_call(Talking& talking) {
    if (is_settling_) return;
    random.one_in(2) ? act(talking) : on_call();
  }
  void on_call(Tunneling& tunneling) {
    if (is_settling_) return;
    random.one_in(2) ? act(tunneling) : on_call();
  }
  // What one end of a tunnel was sent by the other.
  std::string& bytes_to(const Tunneling& tunneling) {
    return bytes_[{tunneling.number, !tunneling.is_client}];
  }
  // What one end of a WebSocket was sent by the other.
  const std::vector<std::string>* sent_to(const Talking& talking) const {
    const auto found = sent_.find({talking.number, !talking.is_client});
    return found == sent_.end() ? nullptr : &found->second;
  }

  Random random;

 private:
  const bool has_sockets_ = random.one_in(4);
  const bool has_gateway_ = random.one_in(4);

 public:
  Handlings handlings{random, *loop_, [this] { act_on_all(); }};

 private:
  // ---- the two sides

  void make_server() {
    http::ServerOptions options;
    options.http2 =
        must(http::Http2::create({.max_streams = random.one_in(2) ? 3u : 100u,
                                  .stream_window = random.one_in(2) ? 2048u : 65'536u}));
    if (random.one_in(4)) options.max_requests = 1 + random.below(6);
    if (random.one_in(6)) options.max_body = random.below(kMostBody);
    server_ = must(http::Server::create(
        *loop_, [this](Exchange exchange) { on_request(std::move(exchange)); },
        std::move(options)));
    is_draining_ = false;
  }

  // What goes through a gateway, to that server.
  void make_front() {
    http::ServerOptions options;
    options.http2 = must(http::Http2::create());
    front_ = must(http::Server::create(
        *loop_,
        [this](Exchange exchange) { gateway_.forward(std::move(exchange), "http://up.example"); },
        std::move(options)));
    make_gateway();
  }
  void make_gateway() {
    http::GatewayOptions options;
    options.client = client_options(server_);
    options.upgrades.emplace_back("talk");
    gateway_ = must(http::Gateway::create(*loop_, std::move(options)));
  }

  void make_client() {
    client_ = must(http::Client::create(*loop_, client_options(has_gateway_ ? front_ : server_)));
  }
  http::ClientOptions client_options(http::Server& server) {
    http::ClientOptions options;
    options.http2_without_tls = !random.one_in(3);
    options.http2 =
        must(http::Http2::create({.max_streams = random.one_in(2) ? 2u : 100u,
                                  .stream_window = random.one_in(2) ? 2048u : 65'536u}));
    if (random.one_in(2)) options.max_per_origin = 1 + random.below(3);
    if (random.one_in(3)) options.idle_timeout = Nanos{random.span(2'000'000'000)};
    options.open = [this, &server](std::string_view, std::uint16_t) -> Result<Stream> {
      if (random.one_in(40)) return std::unexpected(error_);
      auto [mine, theirs] = must(make_pair());
      server.add(std::move(theirs));
      return std::move(mine);
    };
    return options;
  }

  Result<std::pair<Stream, Stream>> make_pair() {
    return has_sockets_ ? Stream::socket_pair(*loop_) : Stream::memory_pair(*loop_);
  }

  void on_request(Exchange exchange) {
    const std::string path(exchange.request().path());
    if (path.starts_with("/tunnel/"))
      return serve_tunnel(std::move(exchange), std::stoul(path.substr(8)));
    if (!path.starts_with("/ws/")) return handlings.on_request(std::move(exchange));
    if (random.one_in(6)) return;
    const std::size_t number = std::stoul(path.substr(4));
    forget_attempt(number);
    talkings_.push_back(std::make_unique<Talking>(*this, false));
    Talking& talking = *talkings_.back();
    talking.number = number;
    auto socket = http::WebSocket::accept(std::move(exchange), talking, socket_options());
    if (!socket) return let_go(talking);
    talking.socket = std::move(*socket);
    if (random.one_in(2)) act(talking);
  }

  void serve_tunnel(Exchange exchange, std::size_t number) {
    if (random.one_in(6)) return;
    bytes_[{number, false}].clear();
    for (const auto& each : tunnelings_)
      if (!each->is_client && each->number == number) each->number = 0;
    Result<Stream> stream = exchange.upgrade("talk");
    if (!stream) return;
    tunnelings_.push_back(std::make_unique<Tunneling>(*this, false, number));
    Tunneling& tunneling = *tunnelings_.back();
    tunneling.open(std::move(*stream));
    if (random.one_in(2)) act(tunneling);
  }

  // One that was asked for once more has nobody on its other side.
  void forget_attempt(std::size_t number) {
    sent_.erase({number, false});
    for (const auto& each : talkings_)
      if (!each->is_client && each->number == number) each->number = 0;
  }

  // ---- what may be done

  void act_anywhere() {
    switch (random.below(10)) {
      case 0:
        return ask();
      case 1:
        return connect();
      case 8:
        return ask_for_tunnel();
      case 9:
        if (!tunnelings_.empty()) act(*tunnelings_[random.below(tunnelings_.size())]);
        return;
      case 2:
      case 3:
        if (!askings_.empty()) act(*askings_[random.below(askings_.size())]);
        return;
      case 4:
      case 5:
        if (!talkings_.empty()) act(*talkings_[random.below(talkings_.size())]);
        return;
      case 6:
        if (random.one_in(4)) loop_->run(Run::no_wait);
        return;
      default:
        return act_on_all();
    }
  }

  void act_on_all() {
    if (random.one_in(60)) {
      for (const auto& each : askings_) each->is_silent = true;
      for (const auto& each : tunnelings_) each->is_silent |= each->call.is_open();
      client_ = {};
      make_client();
    } else if (random.one_in(60)) {
      handlings.silence();
      server_ = {};
      make_server();
    } else if (random.one_in(60) && !is_draining_) {
      is_draining_ = true;
      server_.drain(Nanos{random.span(20'000'000'000)}, [this] { make_server(); });
    } else if (random.one_in(60) && has_gateway_) {
      for (const auto& each : tunnelings_)
        if (each->stream.is_open()) each->number = 0;  // It may end anywhere.
      make_gateway();
    } else if (random.one_in(30)) {
      client_.close_idle();
    }
  }

  void ask() {
    if (std::ranges::count_if(askings_, [](const auto& each) { return each->call.is_open(); }) > 12)
      return;
    const auto [number, added] = handlings.add();
    const bool has_body = random.one_in(2);
    added->method = has_body           ? random.one_in(2) ? Method::post : Method::put
                    : random.one_in(5) ? Method::head
                                       : Method::get;
    if (has_body) added->body = letters(number, random.below(random.one_in(4) ? kMostBody : 200));
    askings_.push_back(std::make_unique<Asking>(*this, number));
    Asking& asking = *askings_.back();
    http::CallOptions options{.method = added->method};
    asking.is_upload = has_body && random.one_in(2);
    if (asking.is_upload) {
      options.upload = random.one_in(2) ? added->body.size() : http::kUnknownSize;
      if (random.one_in(4)) options.expect_continue = Nanos{1'000'000'000};
    } else {
      options.body = bytes_of(added->body);
    }
    if (random.one_in(10)) options.deadline = Nanos{random.span(3'000'000'000)};
    asking.call = client_.send("http://a/" + std::to_string(number), asking, std::move(options));
    ASSERT_TRUE(asking.call.is_open());
  }

  void act(Asking& asking) {
    switch (random.below(9)) {
      case 0:
      case 1:
      case 2:
        return upload(asking, random.below(random.one_in(4) ? 30'000 : 500));
      case 3:
        asking.is_paused = true;
        return asking.call.pause();
      case 4:
      case 5:
        asking.is_paused = false;
        return asking.call.resume();
      case 6:
        if (!random.one_in(6)) return;
        asking.is_silent = true;
        return asking.call.cancel();
      case 7:
        if (random.one_in(6)) let_go(asking);
        return;
      default:
        return act_anywhere();
    }
  }

  void upload(Asking& asking, std::size_t most) {
    if (!asking.is_upload) return;
    const std::string& body = handlings.expected[asking.number].body;
    const std::string piece = body.substr(asking.sent, most);
    if (!piece.empty() && asking.call.write(piece)) asking.sent += piece.size();
    if (asking.sent == body.size() && !asking.has_ended) asking.has_ended = asking.call.end();
  }

  template <class T>
  static std::unique_ptr<T> taken_out(std::vector<std::unique_ptr<T>>& from, const T& what) {
    const auto found =
        std::ranges::find_if(from, [&](const auto& each) { return each.get() == &what; });
    if (found == from.end()) return nullptr;
    std::unique_ptr<T> taken = std::move(*found);
    from.erase(found);
    return taken;
  }
  void let_go(Asking& asking) {
    asking.is_silent = true;
    const auto going = taken_out(askings_, asking);
  }
  void let_go(Tunneling& tunneling) {
    tunneling.is_silent = true;
    const auto going = taken_out(tunnelings_, tunneling);
  }
  void let_go(Talking& talking) {
    talking.is_silent = true;
    const auto going = taken_out(talkings_, talking);
  }

  http::WebSocketOptions socket_options() {
    http::WebSocketOptions options;
    if (random.one_in(3)) options.compression = http::WebSocketCompression::each_message;
    if (random.one_in(3)) options.limits.pause_reading = true;
    return options;
  }

  void connect() {
    if (std::ranges::count_if(talkings_, [](const auto& each) { return each->socket.is_open(); }) >
        12)
      return;
    talkings_.push_back(std::make_unique<Talking>(*this, true));
    Talking& talking = *talkings_.back();
    talking.number = ++last_socket_;
    talking.socket = must(http::WebSocket::connect(
        client_, "ws://a/ws/" + std::to_string(talking.number), talking, socket_options()));
  }

  void act(Talking& talking) {
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return talk(talking);
      case 4:
        return talking.socket.pause();
      case 5:
      case 6:
        return talking.socket.resume();
      case 7:
        talking.socket.ping();
        return;
      case 8:
        if (random.one_in(4)) talking.socket.close();
        return;
      case 9:
        if (!random.one_in(12)) return;
        talking.is_silent = true;
        return talking.socket.abort();
      case 10:
        if (random.one_in(12)) let_go(talking);
        return;
      default:
        return act_anywhere();
    }
  }

  void talk(Talking& talking) {
    std::vector<std::string>& sent = sent_[{talking.number, talking.is_client}];
    const std::string text = std::to_string(sent.size()) +
                             letters(sent.size(), random.below(random.one_in(8) ? 90'000 : 200));
    if (talking.socket.queued() < 400'000 && talking.socket.send(text)) sent.push_back(text);
  }

  void ask_for_tunnel() {
    const auto is_alive = [](const auto& each) {
      return each->call.is_open() || each->stream.is_open();
    };
    if (std::ranges::count_if(tunnelings_, is_alive) > 12) return;
    tunnelings_.push_back(std::make_unique<Tunneling>(*this, true, ++last_tunnel_));
    Tunneling& tunneling = *tunnelings_.back();
    tunneling.call = client_.send("http://a/tunnel/" + std::to_string(tunneling.number), tunneling,
                                  {.upgrade = "talk"});
    ASSERT_TRUE(tunneling.call.is_open());
  }

  void act(Tunneling& tunneling) {
    Stream& stream = tunneling.stream;
    if (!stream.is_open() && !tunneling.call.is_open()) return;
    switch (random.below(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return tunnel(tunneling);
      case 4:
        tunneling.is_paused = stream.is_open();
        return stream.pause();
      case 5:
      case 6:
        tunneling.is_paused = false;
        return stream.resume();
      case 7:
        if (random.one_in(4)) stream.end();
        return;
      case 8:
        if (random.one_in(8)) stream.close();
        return;
      case 9:
        if (!random.one_in(12) || !stream.is_open()) return;
        tunneling.is_silent = true;
        return stream.abort();
      case 10:
        if (random.one_in(12)) let_go(tunneling);
        return;
      case 11:
        if (!random.one_in(12) || !tunneling.call.is_open()) return;
        tunneling.is_silent = true;
        return tunneling.call.cancel();
      default:
        return act_anywhere();
    }
  }

  void tunnel(Tunneling& tunneling) {
    const std::string text =
        letters(random.below(26), random.below(random.one_in(8) ? 90'000 : 200));
    Stream& stream = tunneling.stream;
    if (stream.is_open() && stream.queued() < 400'000 && stream.write(text))
      bytes_[{tunneling.number, tunneling.is_client}] += text;
  }

  // ---- the program

  void step() {
    switch (random.below(10)) {
      case 0:
        return ask();
      case 1:
        if (random.one_in(3)) connect();
        if (random.one_in(3)) ask_for_tunnel();
        return;
      case 2:
        return act_anywhere();
      case 3:
        return handlings.act_on_any();
      case 4:
        if (random.one_in(8)) clock_.advance(Nanos{random.span(4'000'000'000)});
        return;
      default:
        loop_->run(Run::no_wait);
    }
  }

  // All that holds somebody up is let go: then all comes to its end, and no time passes for that.
  void settle() {
    is_settling_ = true;
    for (int i = 0; i < 40; ++i) {
      finish_all();
      for (int turn = 0; turn < 30; ++turn) loop_->run(Run::no_wait);
    }
    for (const auto& each : askings_) {
      if (!each->is_silent) EXPECT_TRUE(each->is_closed) << "call " << each->number;
      EXPECT_FALSE(each->call.is_open()) << "call " << each->number;
    }
    for (const auto& each : talkings_) {
      if (!each->is_silent)
        EXPECT_TRUE(each->is_closed) << "socket " << each->number << each->is_client;
    }
    for (const auto& each : tunnelings_) {
      if (!each->is_silent)
        EXPECT_TRUE(each->is_closed) << "tunnel " << each->number << each->is_client;
    }
    EXPECT_EQ(client_.metrics().calls, 0u);
    EXPECT_EQ(client_.metrics().waiting, 0u);
    pass_minutes();
    handlings.let_all_go();
    pass_minutes();
    EXPECT_EQ(client_.metrics().connections, 0u);
    EXPECT_EQ(server_.metrics().connections, 0u);
    EXPECT_EQ(server_.metrics().exchanges, 0u);
    if (has_gateway_) EXPECT_EQ(gateway_.metrics().forwarding, 0u);
    if (has_gateway_) EXPECT_EQ(front_.metrics().connections, 0u);
    handlings.expect_over();
  }

  void finish_all() {
    handlings.begin_to_settle();
    handlings.let_all_go();
    for (const auto& each : askings_) {
      each->is_paused = false;
      each->call.resume();
      if (each->call.is_open()) upload(*each, kMostBody);
    }
    for (const auto& each : talkings_) {
      each->socket.resume();
      each->socket.close();
    }
    for (const auto& each : tunnelings_) {
      each->is_paused = false;
      each->stream.resume();
      each->stream.end();
    }
  }

  void pass_minutes() {
    for (int i = 0; i < 60; ++i) {
      clock_.advance(Nanos{2'000'000'000});
      for (int turn = 0; turn < 5; ++turn) loop_->run(Run::no_wait);
    }
  }

  const std::error_code error_{ECONNREFUSED, std::system_category()};
  http::Server server_;
  http::Server front_;
  http::Gateway gateway_;
  http::Client client_;
  std::vector<std::unique_ptr<Asking>> askings_;
  std::vector<std::unique_ptr<Talking>> talkings_;
  std::map<std::pair<std::size_t, bool>, std::vector<std::string>> sent_;  // By a client or not.
  std::vector<std::unique_ptr<Tunneling>> tunnelings_;
  std::map<std::pair<std::size_t, bool>, std::string> bytes_;  // The same of those.
  std::size_t last_socket_ = 0;
  std::size_t last_tunnel_ = 0;
  bool is_draining_ = false;
  bool is_settling_ = false;
};

// ---- a call

void Asking::note(const char* what) {
  EXPECT_TRUE(!is_silent && !is_closed) << what << " of " << number;
}

const ExpectedAnswer* Asking::answer() const {
  return attempt_ == 0 ? nullptr : &world_.handlings.expected[attempt_];
}

void Asking::on_upload() {
  note("on_upload");
  EXPECT_TRUE(is_upload);
  EXPECT_FALSE(std::exchange(was_upload_told_, true));
  world_.on_call(*this);
}

void Asking::on_informational(http::Status status, const http::FieldsView&) {
  note("on_informational");
  EXPECT_EQ(status, http::Status::early_hints);
  EXPECT_EQ(stage_, Stage::asked);
  world_.on_call(*this);
}

void Asking::on_response(const http::Response& response) {
  note("on_response");
  EXPECT_EQ(stage_, Stage::asked);
  stage_ = Stage::answered;
  method_ = world_.handlings.expected[number].method;
  is_sized_ = response.content_length().has_value();
  const std::string_view said = response["X-Number"];
  if (!said.empty()) {
    attempt_ = std::stoul(std::string(said));
    EXPECT_EQ(answer()->number, number);
  }
  world_.on_call(*this);
}

void Asking::on_body(Bytes bytes) {
  note("on_body");
  EXPECT_EQ(stage_, Stage::answered);
  EXPECT_FALSE(has_body_ended_ || is_paused);
  EXPECT_FALSE(bytes.empty());
  EXPECT_NE(method_, Method::head);
  received_ += text_of(bytes);
  if (answer() != nullptr) EXPECT_TRUE(answer()->answer.starts_with(received_)) << number;
  world_.on_call(*this);
}

void Asking::on_body_end(const http::FieldsView&) {
  note("on_body_end");
  EXPECT_FALSE(std::exchange(has_body_ended_, true) || is_paused);
  world_.on_call(*this);
}

void Asking::on_drained() {
  note("on_drained");
  EXPECT_TRUE(is_upload);
  world_.on_call(*this);
}

void Asking::on_closed(std::error_code error) {
  note("on_closed");
  is_closed = true;
  EXPECT_FALSE(call.is_open());
  if (!error) {
    EXPECT_EQ(stage_, Stage::answered) << number;
    if (answer() != nullptr) {
      if (!is_sized_) EXPECT_TRUE(answer()->is_ended || method_ == Method::head) << number;
      if (method_ != Method::head) EXPECT_EQ(received_, answer()->answer) << number;
    }
  }
  stage_ = Stage::ended;
  world_.on_call(*this);
}

// ---- a WebSocket

void Talking::note(const char* what) {
  EXPECT_TRUE(!is_silent && !is_closed) << what << " of " << number << is_client;
}

void Talking::on_open() {
  note("on_open");
  EXPECT_TRUE(is_client);
  EXPECT_FALSE(std::exchange(is_open_, true));
  world_.on_call(*this);
}

void Talking::on_message(Bytes bytes, http::MessageKind kind) {
  note("on_message");
  EXPECT_TRUE(is_open_ || !is_client);
  EXPECT_EQ(kind, http::MessageKind::text);
  const std::vector<std::string>* sent = world_.sent_to(*this);
  ASSERT_NE(sent, nullptr);
  ASSERT_LT(heard_, sent->size());
  EXPECT_TRUE((*sent)[heard_] == text_of(bytes)) << number << is_client;
  ++heard_;
  world_.on_call(*this);
}

void Talking::on_pong(Bytes bytes) {
  note("on_pong");
  EXPECT_TRUE(bytes.empty());
  world_.on_call(*this);
}

void Talking::on_drained() {
  note("on_drained");
  world_.on_call(*this);
}

void Talking::on_closed(http::CloseCode, std::string_view, std::error_code error) {
  note("on_closed");
  is_closed = true;
  EXPECT_FALSE(socket.is_open());
  if (!error) EXPECT_TRUE(is_open_ || !is_client);
  world_.on_call(*this);
}

// ---- a tunnel

void Tunneling::note(const char* what) {
  EXPECT_TRUE(!is_silent && !is_closed) << what << " of " << number << is_client;
}

void Tunneling::open(Stream given) {
  stream = std::move(given);
  stream.set_half_open(world_.random.one_in(2));
  stream.start(*this);
}

void Tunneling::on_response(const http::Response&) {
  note("on_response");
  world_.on_call(*this);
}

void Tunneling::on_body(Bytes) {
  note("on_body");
  world_.on_call(*this);
}

void Tunneling::on_upgraded(const http::Response&, Stream given) {
  note("on_upgraded");
  EXPECT_TRUE(is_client);
  open(std::move(given));
  world_.on_call(*this);
}

std::size_t Tunneling::on_data(Bytes bytes) {
  note("on_data");
  EXPECT_FALSE(is_paused || has_other_ended_);
  received_ += text_of(bytes);
  if (number != 0)
    EXPECT_TRUE(world_.bytes_to(*this).starts_with(received_)) << number << is_client;
  const std::size_t size = bytes.size();
  world_.on_call(*this);
  return size;
}

void Tunneling::on_end() {
  note("on_end");
  EXPECT_FALSE(std::exchange(has_other_ended_, true) || is_paused);
  if (number != 0)
    EXPECT_EQ(received_.size(), world_.bytes_to(*this).size()) << number << is_client;
  world_.on_call(*this);
}

void Tunneling::on_drained() {
  note("on_drained");
  world_.on_call(*this);
}

void Tunneling::on_closed(std::error_code) {
  note("on_closed");
  is_closed = true;
  EXPECT_FALSE(stream.is_open() || call.is_open());
  world_.on_call(*this);
}

class RandomPair : public ::testing::TestWithParam<int> {};

TEST_P(RandomPair, BreaksNoPromise) {
  for (const std::uint64_t seed : seeds(60)) {
    PairWorld(seed * 8 + static_cast<std::uint64_t>(GetParam())).run(600);
    ASSERT_FALSE(HasFailure()) << "SPATE_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomPair, ::testing::Range(0, 4));

}  // namespace
}  // namespace spate::testing
