// HTTP with failing system calls: the first call of a kind fails, or the second, the third ...
// until a scenario runs without a failure. Each scenario ends with success or an error, and nothing
// hangs or leaks; the server serves the next request.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "http/http2_client.h"
#include "spate/http/client.h"
#include "spate/http/events.h"
#include "spate/http/files.h"
#include "spate/http/gateway.h"
#include "spate/http/http2.h"
#include "spate/http/router.h"
#include "tests/support/own_tree.h"
#include "tests/support/scripted.h"

// Makes nothrow `new` fail with the plan's memory, too.
namespace {
bool is_new_injected = false;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (is_new_injected && spate::injected(spate::SystemCall::allocate) != 0) return nullptr;
  return ::operator new(size);
}

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;

// More than any queue holds before it is full, whole or in three pieces.
const std::string kLong(300'000, 'x');

// Keeps a stream, sends back its input, and ends with it.
class Echo final : public StreamHandler {
 public:
  void take(Stream stream) {
    stream_ = std::move(stream);
    stream_.start(*this);
  }
  Stream& stream() { return stream_; }
  std::size_t on_data(Bytes bytes) override {
    heard += text_of(bytes);
    if (answers) stream_.write(bytes);
    if (on_heard) on_heard();
    return bytes.size();
  }
  void on_closed(std::error_code) override {
    if (on_over) on_over();
  }

  bool answers = false;
  std::string heard;
  std::function<void()> on_heard;
  std::function<void()> on_over;

 private:
  Stream stream_;
};

enum class Spoken : bool { http1, http2 };

// A server with many features, a gateway to it, and a client of both.
class Scene final : public http::CallHandler {
 public:
  Scene(const OwnTree& tree, Spoken spoken)
      : spoken_(spoken), files_(must(http::Files::open(tree.root()))) {
    router_.get("/hello", [](Exchange exchange) { exchange.respond("hello"); });
    router_.get("/elsewhere", [](Exchange exchange) {
      http::Fields fields;
      fields.add(http::FieldId::location, "/hello");
      exchange.respond(Status::found, fields);
    });
    router_.post("/length", [](Exchange exchange) {
      read_body(std::move(exchange), 1'000'000,
                [](Exchange whole, Bytes body) { whole.respond(std::to_string(body.size())); });
    });
    router_.get("/files/*path", [this](Exchange exchange) {
      const std::string path = exchange.request().param("path");
      files_.serve(std::move(exchange), path);
    });
    router_.get("/events", [this](Exchange exchange) {
      events_ = http::EventStream::open(std::move(exchange));
      events_.send("one");
    });
    router_.get("/echo", [this](Exchange exchange) {
      if (auto stream = exchange.upgrade("echo")) echo_.take(std::move(*stream));
    });
    echo_.answers = true;
    server_ = must(http::Server::create(loop, router_, serving()));
    port_ = must(server_.listen(Address::loopback_ipv4(0))).port();
    outer_ = must(http::Server::create(
        loop, [this](Exchange exchange) { gateway_.forward(std::move(exchange), url(port_, "")); },
        serving()));
    outer_port_ = must(outer_.listen(Address::loopback_ipv4(0))).port();
    http::GatewayOptions options;
    options.upgrades = {"echo"};
    options.client = asking();
    gateway_ = must(http::Gateway::create(loop, std::move(options)));
    client_ = must(http::Client::create(loop, asking()));
  }

  void ask(const std::string& path, http::CallOptions options = {}) {
    send(port_, path, std::move(options));
  }
  void ask_gateway(const std::string& path, http::CallOptions options = {}) {
    send(outer_port_, path, std::move(options));
  }
  // Runs until the end, by the deadline at the latest. Returns whether it came.
  bool has_ended() {
    for (int i = 0; i < 40 && !is_over_; ++i) {
      for (int turn = 0; turn < 60 && !is_over_; ++turn) loop.run(Run::no_wait);
      if (!is_over_) clock.advance(Nanos{5'000'000'000});
    }
    return is_over_;
  }
  // Returns whether a request, and one through the gateway, is still served.
  bool serves() {
    client_ = must(http::Client::create(loop, asking()));
    for (const std::uint16_t port : {port_, outer_port_}) {
      is_over_ = false;
      body_.clear();
      send(port, "/hello", {});
      if (!has_ended() || error_ || body_ != "hello") return false;
    }
    return true;
  }
  // Returns true if nothing is left after everything was destroyed, nor appears after all
  // deadlines.
  bool is_tidy() {
    call_ = {};
    client_ = {};
    talk_ = {};
    events_ = {};
    for (int i = 0; i < 40 && !has_nothing_left(); ++i) turns_and(Nanos{5'000'000'000});
    turns_and(Nanos{200'000'000'000});
    turns_and(Nanos{0});
    return has_nothing_left();
  }

  const std::string& body() const { return body_; }
  std::error_code error() const { return error_; }

 private:
  http::ServerOptions serving() const {
    http::ServerOptions options;
    if (spoken_ == Spoken::http2) options.http2 = must(http::Http2::create());
    return options;
  }
  http::ClientOptions asking() const {
    http::ClientOptions options;
    if (spoken_ == Spoken::http2) options.http2 = must(http::Http2::create());
    options.http2_without_tls = spoken_ == Spoken::http2;
    return options;
  }

  bool has_nothing_left() const {
    return server_.metrics().exchanges == 0 && outer_.metrics().exchanges == 0 &&
           gateway_.metrics().forwarding == 0;
  }
  void turns_and(Nanos time) {
    for (int turn = 0; turn < 20; ++turn) loop.run(Run::no_wait);
    clock.advance(time);
  }

  void on_upload() override {
    for (int i = 0; i < 3; ++i) call_.write(std::string_view(kLong).substr(0, kLong.size() / 3));
    call_.end();
  }
  void on_body(Bytes bytes) override {
    body_ += text_of(bytes);
    if (body_.contains("data: one")) events_.end();
  }
  void on_upgraded(const http::Response&, Stream stream) override {
    talk_.on_heard = [this] {
      if (talk_.heard == "ping") end_talk();
    };
    talk_.on_over = [this] { end({}); };
    const bool is_set_up = stream.set_deadline(Nanos{20'000'000'000}) && stream.write("ping");
    if (!is_set_up) return end({ENOMEM, std::system_category()});
    talk_.take(std::move(stream));
  }
  void on_closed(std::error_code error) override { end(error); }

  void end_talk() {
    body_ = talk_.heard;
    talk_.stream().abort();
    end({});
  }
  void end(std::error_code error) {
    EXPECT_FALSE(is_over_) << "told twice";
    is_over_ = true;
    error_ = error;
  }
  void send(std::uint16_t port, const std::string& path, http::CallOptions options) {
    call_ = client_.send(url(port, path), *this, std::move(options));
    if (!call_.is_open()) end({ENOMEM, std::system_category()});
  }
  static std::string url(std::uint16_t port, const std::string& path) {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }

  const Spoken spoken_;
  ScriptedClock clock;
  std::unique_ptr<Loop> owned_ = must(Loop::create({.clock = &clock}));
  Loop& loop = *owned_;
  http::Files files_;
  http::Router router_;
  http::EventStream events_;
  Echo echo_;
  Echo talk_;
  http::Server server_;
  http::Gateway gateway_;
  http::Server outer_;
  http::Client client_;
  http::Call call_;
  std::uint16_t port_ = 0;
  std::uint16_t outer_port_ = 0;
  std::string body_;
  std::error_code error_;
  bool is_over_ = false;
};

struct Fault {
  const char* name;
  SystemCall call;
  int error;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
constexpr Fault kFaults[] = {
    {"Allocate", SystemCall::allocate, ENOMEM},
    {"Receive", SystemCall::receive, ECONNRESET},
    {"Send", SystemCall::send, EPIPE},
    {"SendFile", SystemCall::send_file, EIO},
    {"Accept", SystemCall::accept, EMFILE},
    {"Connect", SystemCall::connect, EADDRNOTAVAIL},
    {"Socket", SystemCall::socket, ENFILE},
    {"Option", SystemCall::socket_option, ENOBUFS},
    {"Shutdown", SystemCall::shutdown, ENOTCONN},
    {"Open", SystemCall::open, EMFILE},
    {"Watch", SystemCall::epoll_ctl, ENOSPC},
    {"Read", SystemCall::read, EIO},
    {"Wait", SystemCall::epoll_wait, EINTR},
};

struct Scenario {
  const char* name;
  std::function<void(Scene&)> begin;
  std::string body;  // If it ends well.
};
const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      {"get", [](Scene& scene) { scene.ask("/hello"); }, "hello"},
      {"redirect", [](Scene& scene) { scene.ask("/elsewhere", {.max_redirects = 1}); }, "hello"},
      {"upload",
       [](Scene& scene) {
         scene.ask("/length", {.method = http::Method::post, .upload = http::kUnknownSize});
       },
       "300000"},
      {"file", [](Scene& scene) { scene.ask("/files/long"); }, kLong},
      {"events", [](Scene& scene) { scene.ask("/events"); }, "data: one\n\n"},
      {"upgrade", [](Scene& scene) { scene.ask("/echo", {.upgrade = "echo"}); }, "ping"},
      {"gateway", [](Scene& scene) { scene.ask_gateway("/files/long"); }, kLong},
      {"gateway_upload",
       [](Scene& scene) {
         scene.ask_gateway("/length", {.method = http::Method::post,
                                       .upload = http::kUnknownSize,
                                       .expect_continue = Nanos{1'000'000'000}});
       },
       "300000"},
      {"tunnel", [](Scene& scene) { scene.ask_gateway("/echo", {.upgrade = "echo"}); }, "ping"},
  };
  return all;
}

class HttpFaults : public ::testing::TestWithParam<Fault> {
 protected:
  // Returns false when the plan no longer had any effect.
  bool survives(const Scenario& scenario, Spoken spoken, std::uint64_t nth, std::uint64_t times) {
    Scene scene(tree_, spoken);
    FaultPlan plan;
    plan.fail_nth(GetParam().call, nth, GetParam().error, times);
    {
      const FaultScope scope(plan);
      is_new_injected = true;
      scenario.begin(scene);
      EXPECT_TRUE(scene.has_ended());
      is_new_injected = false;
    }
    const bool has_failed = plan.failures(GetParam().call) > 0;
    if (!has_failed) EXPECT_EQ(scene.body(), scenario.body) << scene.error().message();
    EXPECT_TRUE(scene.serves());
    EXPECT_TRUE(scene.is_tidy());
    return has_failed && !HasFailure();
  }

  void end_every_scenario(Spoken spoken) {
    tree_.write("long", kLong);
    for (const Scenario& scenario : scenarios()) {
      for (const std::uint64_t times : {1u, 4u}) {
        for (std::uint64_t nth = 1; nth < 400; ++nth) {
          SCOPED_TRACE(::testing::Message()
                       << scenario.name << ": call " << nth << ", " << times << " times");
          if (!survives(scenario, spoken, nth, times)) break;
        }
        if (HasFailure()) return;
      }
    }
  }

  OwnTree tree_;
};

TEST_P(HttpFaults, EveryHttp1ScenarioEndsCleanly) { end_every_scenario(Spoken::http1); }

TEST_P(HttpFaults, EveryHttp2ScenarioEndsCleanly) { end_every_scenario(Spoken::http2); }

INSTANTIATE_TEST_SUITE_P(Each, HttpFaults, ::testing::ValuesIn(kFaults),
                         ::testing::PrintToStringParamName());

// A server of HTTP/2, and a client that exercises many features.
class Http2Scene {
 public:
  explicit Http2Scene(const OwnTree& tree) : files_(must(http::Files::open(tree.root()))) {
    router_.get("/hello", [](Exchange exchange) { exchange.respond("hello"); });
    router_.get("/pieces", [this](Exchange exchange) {
      http::Fields fields;
      for (int i = 0; i < 40; ++i) fields.add("X-" + std::to_string(i), "value");
      exchange.begin(Status::ok, fields);
      exchange.set_deadline(Nanos{5'000'000'000});
      exchange.write("one");
      kept_.push_back(std::move(exchange));
    });
    router_.post("/length", [](Exchange exchange) {
      read_body(std::move(exchange), 1'000'000,
                [](Exchange whole, Bytes body) { whole.respond(std::to_string(body.size())); });
    });
    router_.get("/files/*path", [this](Exchange exchange) {
      const std::string path = exchange.request().param("path");
      files_.serve(std::move(exchange), path);
    });
    http::ServerOptions options;
    options.http2 = must(http::Http2::create());
    server_ = must(http::Server::create(*loop_, router_, std::move(options)));
  }

  std::unique_ptr<Http2Client> connect() {
    auto pair = must(Stream::memory_pair(*loop_));
    return connect(std::move(pair));
  }
  void converse() {
    const std::unique_ptr<Http2Client> client = connect(std::move(first_));
    turns(10);
    client->get("/hello");
    client->get("/files/long");
    client->get("/pieces");
    client->post("/length", kLong);
    turns(40);
    for (Exchange& exchange : kept_) {
      http::Fields trailers;
      trailers.add("Checksum", "3");
      exchange.end(trailers);
    }
    turns(20);
    kept_.clear();
  }
  bool serves() {
    const std::unique_ptr<Http2Client> client = connect();
    const auto id = client->get("/hello");
    turns(20);
    return client->answers[id].body == "hello";
  }
  bool is_tidy() {
    for (int i = 0; i < 20; ++i) {
      turns(10);
      clock_.advance(Nanos{5'000'000'000});
    }
    return server_.metrics().exchanges == 0 && server_.metrics().connections == 0;
  }

 private:
  std::unique_ptr<Http2Client> connect(std::pair<Stream, Stream> pair) {
    auto client = std::make_unique<Http2Client>(std::move(pair.first));
    server_.add(std::move(pair.second));
    return client;
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) loop_->run(Run::no_wait);
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));
  std::pair<Stream, Stream> first_ = must(Stream::memory_pair(*loop_));
  http::Files files_;
  http::Router router_;
  http::Server server_;
  std::vector<Exchange> kept_;
};

TEST(Http2Faults, EndOnlyAffectedStreams) {
  OwnTree tree;
  tree.write("long", kLong);
  for (const std::uint64_t times : {1u, 4u}) {
    bool has_failed = true;
    for (std::uint64_t nth = 1; has_failed && !HasFailure(); ++nth) {
      SCOPED_TRACE(::testing::Message() << "call " << nth << ", " << times << " times");
      Http2Scene scene(tree);
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM, times);
      {
        const FaultScope scope(plan);
        is_new_injected = true;
        scene.converse();
        is_new_injected = false;
      }
      has_failed = plan.failures(SystemCall::allocate) > 0;
      EXPECT_TRUE(scene.serves());
      EXPECT_TRUE(scene.is_tidy());
    }
  }
}

// A client of HTTP/2 that exercises many features of a server.
class Http2ClientScene {
 public:
  Http2ClientScene() {
    router_.get("/hello", [](Exchange exchange) { exchange.respond("hello"); });
    router_.get("/long", [](Exchange exchange) { exchange.respond(kLong); });
    router_.post("/length", [](Exchange exchange) {
      read_body(std::move(exchange), 1'000'000,
                [](Exchange whole, Bytes body) { whole.respond(std::to_string(body.size())); });
    });
    http::ServerOptions options;
    options.http2 = must(http::Http2::create());
    server_ = must(http::Server::create(*loop_, router_, std::move(options)));
    client_ = make_client();
    for (int i = 0; i < 8; ++i) pairs_.push_back(must(Stream::memory_pair(*loop_)));
  }

  void converse() {
    fetch("/hello");
    fetch("/long");
    fetch("/length", {.method = http::Method::post, .body = bytes_of(kLong)});
    upload_ = fetch_call("/length", {.method = http::Method::post, .upload = http::kUnknownSize});
    http::Call paused = fetch_call("/long");
    paused.pause();
    turns(60);
    upload_.write(kLong);
    turns(60);
    http::Fields trailers;
    trailers.add("Checksum", "3");
    upload_.end(std::move(trailers));
    paused.resume();
    turns(60);
    calls_.push_back(std::move(paused));
  }
  bool is_tidy() {
    for (int i = 0; i < 10; ++i) {
      turns(20);
      clock_.advance(Nanos{5'000'000'000});
    }
    // An idle timeout may be lost for lack of memory, too.
    client_.close_idle();
    turns(20);
    return told_ == asked_ && client_.metrics().calls == 0 && client_.metrics().connections == 0 &&
           server_.metrics().exchanges == 0;
  }
  bool serves() {
    std::string text;
    const http::Call call = client_.fetch("http://a/hello", [&](Result<http::Response> response) {
      if (response) text = response->text();
    });
    turns(40);
    return text == "hello";
  }

 private:
  http::Client make_client() {
    http::ClientOptions options;
    options.http2 = must(http::Http2::create());
    options.http2_without_tls = true;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      if (pairs_.empty()) pairs_.push_back(must(Stream::memory_pair(*loop_)));
      auto [mine, theirs] = std::move(pairs_.back());
      pairs_.pop_back();
      server_.add(std::move(theirs));
      return std::move(mine);
    };
    return must(http::Client::create(*loop_, std::move(options)));
  }
  void fetch(std::string path, http::CallOptions options = {}) {
    calls_.push_back(fetch_call(std::move(path), std::move(options)));
  }
  // on_closed() is called once, unless the call cannot even begin.
  http::Call fetch_call(std::string path, http::CallOptions options = {}) {
    http::Call call = client_.fetch(
        "http://a" + path, [this](Result<http::Response>) { ++told_; }, std::move(options));
    asked_ += call.is_open();
    return call;
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) loop_->run(Run::no_wait);
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));
  std::vector<std::pair<Stream, Stream>> pairs_;
  http::Router router_;
  http::Server server_;
  http::Client client_;
  std::vector<http::Call> calls_;
  http::Call upload_;
  int asked_ = 0;
  int told_ = 0;
};

TEST(Http2ClientFaults, EndEachAffectedCallOnce) {
  for (const std::uint64_t times : {1u, 4u}) {
    bool has_failed = true;
    for (std::uint64_t nth = 1; has_failed && !HasFailure(); ++nth) {
      SCOPED_TRACE(::testing::Message() << "call " << nth << ", " << times << " times");
      Http2ClientScene scene;
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM, times);
      {
        const FaultScope scope(plan);
        is_new_injected = true;
        scene.converse();
        is_new_injected = false;
      }
      has_failed = plan.failures(SystemCall::allocate) > 0;
      EXPECT_TRUE(scene.is_tidy());
      EXPECT_TRUE(scene.serves());
    }
  }
}

}  // namespace
}  // namespace spate::testing
