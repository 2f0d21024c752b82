// A typical machine, in hundreds of Worlds: workers that serve, a service on a unix socket, work on
// other threads, children; and a client that finds it by name, while name servers fail in various
// ways. All of the library's promises must hold together.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/net/bytes.h"
#include "spate/net/connect.h"
#include "spate/net/process.h"
#include "spate/net/server.h"
#include "spate/net/workers.h"
#include "spate/offload.h"
#include "spate/signal.h"
#include "spate/sim/running.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::Running;
using sim::World;

constexpr std::uint16_t kMachinePort = 7000;
constexpr Nanos kMachineTrouble = 1min;
constexpr std::string_view kMachineName = "machine.example";

Address machine_path() { return must(Address::parse("unix:/run/machine.sock")); }

struct MachineEcho : Echo {
  void on_open() override { stream().set_idle_timeout(30s); }
};

// Sends a text, and expects its echo.
class Sayer final : public StreamHandler {
 public:
  explicit Sayer(std::size_t size) {
    while (text_.size() < size) text_ += static_cast<char>('a' + text_.size() * 7 % 23);
  }
  // Returns whether it has begun.
  bool begin(Stream stream) {
    stream_ = std::move(stream);
    echoed_ = 0;
    stream_.start(*this);
    stream_.set_idle_timeout(20s);
    return stream_.write(text_);
  }
  std::size_t on_data(Bytes bytes) override {
    const std::string_view part = text_of(bytes);
    sim::always(text_.compare(echoed_, part.size(), part) == 0, "bytes come in order, and whole");
    echoed_ += part.size();
    if (echoed_ == text_.size()) stream_.close();
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_over = true; }
  bool has_all() const { return echoed_ == text_.size(); }

  bool is_over = false;

 private:
  std::string text_;
  std::size_t echoed_ = 0;
  Stream stream_;
};

// A process that ends with a given code, or must be killed.
class Brief {
 public:
  explicit Brief(Running& running)
      : running_(running), end_(running.loop(), [this] { running_.exit(code()); }) {
    end_.start(code() == 0 ? 1h : 100ms);
  }

 private:
  int code() const { return std::atoi(running_.arguments()[1].c_str()); }

  Running& running_;
  Timer end_;
};

// The main program of a host: its services, and a periodic round of work.
class Machine {
 public:
  Machine(World& world, Loop& loop, int& rounds)
      : world_(world),
        loop_(loop),
        rounds_(rounds),
        workers_(must(Workers::create({.threads = 1 + unsigned(world.draw(3))}))),
        local_(must(serve<MachineEcho>(loop, machine_path()))),
        tick_(loop, [this] { begin_round(); }),
        term_(loop, [this] { ++terms_; }) {
    constexpr std::array kBalances = {Balance::reuse_port, Balance::round_robin,
                                      Balance::least_connections, Balance::peer_hash};
    must(serve<MachineEcho>(*workers_, Address::any_ipv6(kMachinePort),
                            {.balance = kBalances[world.draw(kBalances.size())]}));
    sim::always(!term_.start(SIGTERM), "a signal is watched");
    tick_.start(0s);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  int terms() const { return terms_; }

 private:
  void begin_round() {
    left_ = 2;  // The work and the child, each of which ends once.
    if (says_) sim::sometimes(says_->has_all(), "the service at the path has answered");
    says_.emplace(1 + world_.draw(20'000));
    connecting_ = connect(loop_, machine_path(), [this](Result<Stream> stream) {
      sim::always(stream.has_value(), "the service at the path is there");
      sim::always(says_->begin(must(std::move(stream))), "writing begins");
    });
    const std::uint64_t number = world_.draw(1000);
    auto offloading = offload(
        loop_, [number] { return number * 2; },
        [this, number](std::uint64_t twice) {
          sim::always(twice == number * 2, "work gives its result");
          end_one();
        });
    sim::always(offloading.has_value(), "work is taken");
    if (offloading) offloading_ = std::move(*offloading);
    spawn_one(static_cast<int>(world_.draw(20)));
  }
  void spawn_one(int code) {
    auto process = spawn(loop_, {.file = "child", .arguments = {std::to_string(code)}},
                         [this, code](const Child& child) {
                           const bool was_killed = child.signaled();
                           sim::always(was_killed ? code == 0 : child.exit_code() == code,
                                       "a child ends as it should");
                           sim::sometimes(was_killed, "a child was killed");
                           end_one();
                         });
    sim::always(process.has_value(), "a child begins");
    if (!process) return;
    process_ = std::move(*process);
    if (code == 0) sim::always(!process_.kill(SIGTERM), "a child is killed");
  }
  void end_one() {
    if (--left_ > 0) return;
    ++rounds_;
    tick_.start(4s);
  }

  World& world_;
  Loop& loop_;
  int& rounds_;
  int left_ = 0;
  int terms_ = 0;
  std::unique_ptr<Workers> workers_;
  Server<MachineEcho> local_;
  Timer tick_;
  Signal term_;
  std::optional<Sayer> says_;
  Connecting connecting_;
  Offloading offloading_;
  Process process_;
};

// Connects by name, again and again, until the faults are over and it has received everything once
// more.
class Visitor {
 public:
  Visitor(World& world, Loop& loop) : world_(world), loop_(loop), tick_(loop, [this] { look(); }) {
    look();
  }
  bool is_done() const { return is_done_; }

 private:
  void look() {
    if (says_ && !says_->is_over) return tick_.start(1s), void();
    if (says_ && says_->has_all()) {
      sim::sometimes(tries_ > 1, "another attempt succeeded");
      is_done_ = world_.now() > kMachineTrouble;
      if (is_done_) return;
    }
    ++tries_;
    says_.reset();
    connecting_ = connect(loop_, kMachineName, kMachinePort,
                          [this](Result<Stream> stream) {
                            sim::sometimes(!stream && stream.error().category() == name_category(),
                                           "a name was not found");
                            sim::sometimes(stream.has_value(), "a connection was made");
                            if (stream)
                              says_.emplace(1 + world_.draw(20'000)).begin(std::move(*stream));
                            tick_.start(1s);
                          },
                          {.timeout = 10s});
  }

  World& world_;
  Loop& loop_;
  Timer tick_;
  std::optional<Sayer> says_;
  Connecting connecting_;
  int tries_ = 0;
  bool is_done_ = false;
};

sim::NameAnswer drawn_answer(World& world, const Host& machine) {
  constexpr std::array kErrors = {NameError::no_such_host, NameError::server_failure,
                                  NameError::timeout};
  sim::NameAnswer answer{.addresses = {machine.address(0), machine.address_ipv6(0)},
                         .delay = drawn_span(world, 2s),
                         .jitter = drawn_span(world, 2s)};
  if (world.draw(2) == 0) answer.error = kErrors[world.draw(kErrors.size())];
  return answer;
}

void play_machine(World& world) {
  Host& machine = world.add_host("machine");
  Host& client = world.add_host("client");
  int rounds = 0;
  if (world.draw(2) == 0) machine.delay_work(drawn_span(world, 5s));
  machine.program("child", [](Running& running) { return std::make_unique<Brief>(running); });
  machine.boot([&](Loop& loop) { return std::make_unique<Machine>(world, loop, rounds); });
  draw_weather(world, machine, client, kMachineTrouble);
  for (Nanos time{0}; time < kMachineTrouble; time += 5s + drawn_span(world, 20s)) {
    world.at(time, [&world, &machine, answer = drawn_answer(world, machine)] {
      world.answer_name(kMachineName, answer);
      machine.raise(SIGTERM);
    });
  }
  world.at(kMachineTrouble,
           [&] { world.answer_name(kMachineName, {.addresses = {machine.address(0)}}); });
  {
    const auto visitor =
        client.run([&](Loop& loop) { return std::make_unique<Visitor>(world, loop); });
    const Outcome end = world.run_until([&] { return visitor->is_done(); }, 30min);
    sim::always(end == Outcome::done, "the visitor gets all");
  }
  const int before = rounds;
  world.run_for(1min);
  sim::always(rounds > before, "the machine goes on");
}

SPATE_SWARM(AMachineKeepsItsPromises, 400, play_machine)

}  // namespace
}  // namespace spate::testing
