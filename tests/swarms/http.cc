// HTTP in Worlds with all kinds of faults, both versions and through a Gateway: each call ends
// once, with its own response or an error, and no POST is done twice.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kSizesPort = 7007;
constexpr std::uint16_t kGatePort = 7008;
constexpr Nanos kHttpTrouble = 2min;
// A client may need this long to notice a dead connection: TCP doubles the time between its
// retransmissions.
constexpr Nanos kHttpWell = 2 * kHttpTrouble + 40s;

enum class HttpMistake : std::uint8_t { none, repeats_posts };

struct HttpPlan {
  World& world;
  bool speaks_http2 = false;
  HttpMistake mistake = HttpMistake::none;
  bool has_gateway = false;
  std::map<std::string, int> posts{};  // How often each was done, by path.
};

// ---- the server: responds with the number and the size in the path

std::string answer_of(std::string_view number, std::size_t size) {
  return std::string(number) + std::string(size, 'x');
}

void answer(HttpPlan& plan, http::Exchange exchange) {
  const std::string path(exchange.request().path());
  const std::size_t slash = path.rfind('/');
  const std::size_t size = std::strtoull(path.c_str() + slash + 1, nullptr, 10);
  std::string text = answer_of(std::string_view(path).substr(1, slash - 1), size);
  if (exchange.request().method() != http::Method::post) return exchange.respond(text), void();
  http::read_body(std::move(exchange), 1 << 20,
                  [&plan, path, text, size](http::Exchange whole, Bytes body) {
                    sim::always(body.size() == size, "a body is whole");
                    sim::always(++plan.posts[path] == 1, "no POST is done twice");
                    whole.respond(text);
                  });
}

http::Server serve_sizes(HttpPlan& plan, Loop& loop) {
  http::ServerOptions options;
  if (plan.speaks_http2) options.http2 = must(http::Http2::create({.max_streams = 4}));
  auto server = http::serve(
      loop, Address::any_ipv6(kSizesPort),
      [&plan](http::Exchange exchange) { answer(plan, std::move(exchange)); }, options);
  return server ? std::move(*server) : http::Server();
}

// ---- the client

class Asker {
 public:
  Asker(HttpPlan& plan, Loop& loop, const Address& server)
      : plan_(plan),
        world_(plan.world),
        base_("http://" + server.to_string()),
        client_(must(http::Client::create(loop, options()))),
        next_(loop, [this] { ask(); }),
        cancel_(loop, [this] { cancel(); }) {
    next_.start(0s);
  }
  bool is_done() const { return is_done_; }
  const http::Client& client() const { return client_; }

 private:
  struct Question {
    http::Call call{};
    Nanos asked{0};
    std::string path{};
    std::string expected{};
    bool is_over = false;
  };
  static constexpr std::size_t kCalls = 20;

  http::ClientOptions options() {
    http::ClientOptions options{.max_per_origin = 1 + world_.draw(8), .connect = {.timeout = 5s}};
    options.http2_without_tls = plan_.speaks_http2;
    if (plan_.speaks_http2) options.http2 = must(http::Http2::create());
    return options;
  }
  bool is_well() const { return world_.now() > kHttpWell; }

  void ask() {
    const std::size_t size = 1 + world_.draw(world_.draw(8) == 0 ? 100'000 : 100);
    const std::string number = std::to_string(questions_.size());
    Question& question = *questions_.emplace_back(std::make_unique<Question>());
    question.asked = world_.now();
    question.path = '/' + number + '/' + std::to_string(size);
    question.expected = answer_of(number, size);
    send(question, world_.draw(4) == 0 ? size : 0);
    if (world_.draw(8) == 0) cancel_.start(drawn_span(world_, 2s));
    if (questions_.size() < kCalls || !is_well())
      next_.start(world_.draw(2) == 0 ? 0s : drawn_span(world_, 20s));
  }
  void send(Question& question, std::size_t posted) {
    const std::string body(posted, 'b');
    http::CallOptions call;
    if (posted != 0) call.method = http::Method::post;
    call.body = bytes_of(body);
    question.call = client_.fetch(
        base_ + question.path,
        [this, &question, posted](Result<http::Response> response) {
          hear(question, std::move(response), posted);
        },
        std::move(call));
    sim::always(question.call.is_open(), "a call is begun");
  }
  void hear(Question& question, Result<http::Response> response, std::size_t posted) {
    sim::always(!std::exchange(question.is_over, true), "a call is answered once");
    sim::sometimes(!response, "a call fails");
    if (!response && posted != 0 && plan_.mistake == HttpMistake::repeats_posts) {
      question.is_over = false;
      return send(question, posted);
    }
    const bool was_well = question.asked > kHttpWell;
    sim::always(response || !was_well, "a call is answered when all is well");
    if (!response) return;
    const auto status = static_cast<int>(response->status());
    if (plan_.has_gateway) sim::sometimes(status == 502, "a gateway does not reach its server");
    if (status == 408 || status >= 502)
      return sim::always(!was_well, "an answer is that of the server when all is well");
    sim::sometimes(posted > 10'000, "a large body is posted");
    sim::always(status == 200 && response->text() == question.expected,
                "an answer is that to its call, and whole");
    is_done_ = is_done_ || was_well;
  }
  void cancel() {
    Question& question = *questions_[world_.draw(questions_.size())];
    sim::sometimes(!question.is_over, "a call is cancelled");
    question.call.cancel();
    question.is_over = true;
  }

  HttpPlan& plan_;
  World& world_;
  const std::string base_;
  std::vector<std::unique_ptr<Question>> questions_;
  bool is_done_ = false;
  http::Client client_;
  Timer next_;
  Timer cancel_;
};

void restart(Host& host) {
  host.resume();
  if (host.is_up()) host.crash();
  host.restart();
}

void ask_until_done(HttpPlan& plan, Host& client, const Address& server) {
  World& world = plan.world;
  const std::unique_ptr<Asker> asker =
      client.run([&](Loop& loop) { return std::make_unique<Asker>(plan, loop, server); });
  const Outcome end = world.run_until([&] { return asker->is_done(); }, 1h);
  sim::always(end == Outcome::done, "a call is answered in the end");
  sim::sometimes(asker->client().metrics().repeated > 0, "a call was repeated");
  sim::sometimes(asker->client().metrics().reused > 0, "a connection was used again");
}

void play_http(World& world, bool speaks_http2, HttpMistake mistake) {
  HttpPlan plan{world, speaks_http2, mistake};
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  server.boot([&plan](Loop& loop) { return serve_sizes(plan, loop); });
  draw_weather(world, server, client, kHttpTrouble);
  world.at(kHttpTrouble, [&] { restart(server); });
  ask_until_done(plan, client, server.address(kSizesPort));
  world.run_for(1h);
  sim::always(server.open_descriptors() <= 4, "the server leaves nothing open");
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(AnAnswerOfHttpIsThatToItsCall, 1000,
            [](World& world) { play_http(world, false, HttpMistake::none); })
SPATE_SWARM(AnAnswerOfHttp2IsThatToItsCall, 1000,
            [](World& world) { play_http(world, true, HttpMistake::none); })

TEST(SimSwarmDefects, RepeatedPostIsDetected) {
  expect_found(50, "no POST is done twice",
               [](World& world) { play_http(world, false, HttpMistake::repeats_posts); });
}

// ---- an HTTP/2 server that becomes unreachable silently

struct Asked {
  http::Call call{};
  std::optional<Result<http::Response>> response{};

  bool is_answered() const { return response && *response; }
  bool is_late() const { return response && !*response && response->error() == Error::deadline; }
};

class CutOff {
 public:
  explicit CutOff(World& world)
      : plan_{.world = world, .speaks_http2 = true},
        server_(world.add_host("server")),
        host_(world.add_host("client")) {
    server_.boot([this](Loop& loop) { return serve_sizes(plan_, loop); });
    client_ = host_.run([](Loop& loop) {
      http::ClientOptions options;
      options.http2 = must(http::Http2::create());
      options.http2_without_tls = true;
      return must(http::Client::create(loop, std::move(options)));
    });
  }
  ~CutOff() {
    host_.run([this](Loop&) { client_ = {}; });
  }

  void cut() {
    World& world = plan_.world;
    world.draw(2) == 0 ? world.cut(server_, host_) : world.cut_one_way(server_, host_);
  }
  void heal() { plan_.world.heal(server_, host_); }
  std::unique_ptr<Asked> ask(Nanos deadline) {
    return host_.run([&](Loop&) {
      auto asked = std::make_unique<Asked>();
      http::CallOptions options;
      options.deadline = deadline;
      asked->call = client_.fetch(
          "http://" + server_.address(kSizesPort).to_string() + "/1/1",
          [&to = asked->response](Result<http::Response> got) { to.emplace(std::move(got)); },
          std::move(options));
      return asked;
    });
  }
  void cancel(Asked& asked) {
    host_.run([&](Loop&) { asked.call.cancel(); });
  }
  std::size_t connections() const { return client_.metrics().connections; }

 private:
  HttpPlan plan_;
  Host& server_;
  Host& host_;
  http::Client client_;
};

enum class Impatience : std::uint8_t { by_deadline, by_cancelling, by_cancelling_just_now };

// Bytes sent into the cut arrive some time after it; those sent on a new connection arrive at once.
void play_silence(World& world, Impatience impatience) {
  CutOff one(world);
  const std::unique_ptr<Asked> first = one.ask(10s);
  world.run_for(15s);
  sim::always(first->is_answered(), "a call is answered");
  one.cut();
  std::vector<std::unique_ptr<Asked>> patient(world.draw(4));
  for (auto& each : patient) each = one.ask(1h);
  const std::unique_ptr<Asked> late = one.ask(impatience == Impatience::by_deadline ? 5s : 0s);
  world.run_for(6s + drawn_span(world, 100s));
  if (impatience != Impatience::by_deadline) one.cancel(*late);
  sim::always(late->is_late() || impatience != Impatience::by_deadline, "nothing passes a cut");
  if (impatience == Impatience::by_cancelling) world.run_for(2s);  // A PING is not answered.
  one.heal();
  const std::unique_ptr<Asked> next = one.ask(5s);
  world.run_for(5s);
  sim::always(next->is_answered(), "a call behind one that was late has a new connection");
  sim::sometimes(one.connections() == 2, "a silent connection keeps its calls");
  world.run_for(4min);
  for (const auto& each : patient) sim::always(each->is_answered(), "patience is rewarded");
  sim::always(one.connections() == 0, "a silent connection closes with its last call");
}

SPATE_SWARM(ASilentConnectionOfHttp2TakesNoMoreCalls, 300,
            [](World& world) { play_silence(world, Impatience::by_deadline); })

SPATE_SWARM(AServerOfHttp2IsAskedWhetherItIsThere, 300,
            [](World& world) { play_silence(world, Impatience::by_cancelling); })

TEST(SimSwarmDefects, CallCancelledForDeadlineIsDetected) {
  expect_found(50, "a call behind one that was late has a new connection",
               [](World& world) { play_silence(world, Impatience::by_cancelling_just_now); });
}

// ---- a gateway between the two

struct Gate {
  http::Gateway gateway;
  http::Server server;
};

std::unique_ptr<Gate> serve_gate(Loop& loop, const std::string& upstream) {
  auto gate = std::make_unique<Gate>();
  gate->gateway = must(http::Gateway::create(
      loop, {.client = {.max_per_origin = 4, .connect = {.timeout = 5s}}, .timeout = 10s}));
  auto server = http::serve(loop, Address::any_ipv6(kGatePort),
                            [upstream, &gateway = gate->gateway](http::Exchange exchange) {
                              gateway.forward(std::move(exchange), upstream);
                            });
  if (server) gate->server = std::move(*server);
  return gate;
}

void play_gateway(World& world) {
  HttpPlan plan{.world = world, .has_gateway = true};
  Host& server = world.add_host("server");
  Host& gate = world.add_host("gate");
  Host& client = world.add_host("client");
  server.boot([&plan](Loop& loop) { return serve_sizes(plan, loop); });
  const std::string upstream = "http://" + server.address(kSizesPort).to_string();
  gate.boot([upstream](Loop& loop) { return serve_gate(loop, upstream); });
  draw_weather(world, server, gate, kHttpTrouble);
  draw_weather(world, gate, client, kHttpTrouble);
  world.at(kHttpTrouble, [&] {
    restart(server);
    restart(gate);
  });
  ask_until_done(plan, client, gate.address(kGatePort));
  world.run_for(1h);
  sim::always(server.open_descriptors() <= 4, "the server leaves nothing open");
  sim::always(gate.open_descriptors() <= 4, "the gateway leaves nothing open");
}

SPATE_SWARM(AnAnswerByAGatewayIsThatToItsCall, 600, play_gateway)

}  // namespace
}  // namespace spate::testing
