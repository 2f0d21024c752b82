#include "sim/parity/stage.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <numeric>
#include <optional>

#include "spate/error.h"
#include "spate/sim/test_loop.h"
#include "support/own_loopback.h"

namespace spate::parity {

std::string said(std::error_code error) { return error ? error.message() : "-"; }

// ---- actors

std::string Actor::told(std::string_view data) {
  if (data.size() <= 40) return '"' + std::string(data) + '"';
  const unsigned sum = std::accumulate(data.begin(), data.end(), 0u, [](unsigned all, char next) {
    return all * 31 + static_cast<unsigned char>(next);
  });
  return std::to_string(data.size()) + " bytes, sum " + std::to_string(sum);
}

void Actor::flush() {
  if (!data_.empty()) events_ += "  has got " + told(data_) + '\n';
  data_.clear();
}

void Actor::note(std::string_view event) {
  flush();
  events_.append("  ").append(event).append("\n");
}

void Actor::see(std::string_view event) {
  if (is_over) stage_.note(name_ + " is called after its end");
  note(event);
}

std::string Actor::text() const {
  return name_ + ":\n" + events_ + (data_.empty() ? "" : "  has got " + told(data_) + '\n');
}

std::size_t Actor::on_data(Bytes bytes) {
  if (is_over) see("has got more");
  const std::size_t used = uses ? uses(bytes) : bytes.size();
  received += used;
  data_ += text_of(bytes.first(used));
  if (does_with_data) does_with_data(bytes);
  return used;
}

void Actor::on_end() {
  see("the peer ends");
  if (does_at_end) does_at_end();
}

void Actor::on_connected() {
  is_connected = true;
  see("is connected");
  if (does_when_connected) does_when_connected();
}

void Actor::on_drained() {
  if (!does_when_drained) return;  // Without it, the event depends on how much the kernel takes.
  see("has drained");
  does_when_drained();
}

void Actor::on_descriptors(std::span<const int> descriptors, bool some_lost) {
  see("gets " + std::to_string(descriptors.size()) + " descriptors" +
      (some_lost ? ", some are lost" : ""));
  if (does_with_descriptors) does_with_descriptors(descriptors);
  close_descriptors(descriptors);
}

void Actor::on_closed(std::error_code error) {
  see("is closed: " + said(error));
  is_over = true;
}

// ---- stages

void Stage::until(const std::function<bool()>& condition) {
  if (!wait(condition)) note("waited in vain");
}

void Stage::note(std::string_view event) { events_.append(event).append("\n"); }

void Stage::note(std::string_view what, std::error_code error) {
  note(std::string(what) + ": " + said(error));
}

void Stage::note(std::string_view what, std::size_t number) {
  note(std::string(what) + ": " + std::to_string(number));
}

Actor& Stage::actor(std::string name) {
  return *actors_.emplace_back(std::make_unique<Actor>(*this, std::move(name)));
}

Listener& Stage::listen(std::vector<Actor*> accepted, const ListenOptions& options) {
  return listen_at(testing::own_address(0), std::move(accepted), options);
}

Listener& Stage::listen_at(const Address& address, std::vector<Actor*> accepted,
                           const ListenOptions& options) {
  auto accept = [accepted = std::move(accepted), next = 0u](Stream stream, const Address&) mutable {
    if (next == accepted.size()) return;
    Actor& actor = *accepted[next++];
    actor.stream = std::move(stream);
    actor.stream.start(actor);
    actor.note("is accepted");
    actor.is_connected = true;
  };
  auto created = Listener::create(loop(), address, std::move(accept), options);
  if (!created) note("listening", created.error());
  return *listeners_.emplace_back(
      std::make_unique<Listener>(created ? std::move(*created) : Listener()));
}

void Stage::connect(Actor& client, const Listener& listener, const ConnectOptions& options) {
  if (const auto error = client.stream.connect(loop(), listener.address(), client, options))
    note("connecting", error);
}

void Stage::try_to_connect(std::vector<Address> addresses, const ConnectOptions& options) {
  std::optional<std::error_code> told;
  auto connecting = spate::connect(
      loop(), std::move(addresses),
      [&](Result<Stream> stream) { told = stream ? std::error_code() : stream.error(); }, options);
  until([&] { return told.has_value(); });
  if (told) note("connected", *told);
}

Stage::Two Stage::connected() {
  Actor& client = actor("client");
  Actor& server = actor("server");
  connect(client, listen({&server}));
  until([&] { return client.is_connected && server.is_connected; });
  return {client, server};
}

void Stage::until_over(const Two& two) {
  until([&] { return two.client.is_over && two.server.is_over; });
}

Datagram& Stage::datagram(const DatagramOptions& options) {
  auto created = Datagram::create(loop(), Address::loopback_ipv4(0), options);
  if (!created) note("a datagram socket", created.error());
  return *datagrams_.emplace_back(
      std::make_unique<Datagram>(created ? std::move(*created) : Datagram()));
}

void Stage::clear() {
  for (const auto& actor : actors_) actor->stream = Stream();
  listeners_.clear();
  datagrams_.clear();
}

std::string Stage::finish() {
  std::string text = events_;
  for (const auto& actor : actors_) text += actor->text();
  clear();
  return text;
}

namespace {

class RealStage final : public Stage {
 public:
  explicit RealStage(std::string_view backend) : loop_(must(Loop::create({.backend = backend}))) {}
  ~RealStage() override {
    set_exhausted(false);
    clear();
  }

  Loop& loop() override { return *loop_; }
  void pass(Nanos span) override { keep_alive(span); }
  // The lowest free number is the first that is refused.
  void set_exhausted(bool on) override {
    if (on == is_exhausted_) return;
    is_exhausted_ = on;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (on) {
      before_ = limit.rlim_cur;
      const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      limit.rlim_cur = static_cast<rlim_t>(lowest);
      ::close(lowest);
    } else {
      limit.rlim_cur = before_;
    }
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

 protected:
  bool wait(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      keep_alive(1ms);
    }
    return true;
  }

 private:
  void keep_alive(Nanos span) {
    loop_->ref();
    (void)loop_->run_for(span);
    loop_->unref();
  }

  std::unique_ptr<Loop> loop_;
  bool is_exhausted_ = false;
  rlim_t before_ = 0;
};

class WorldStage final : public Stage {
 public:
  explicit WorldStage(std::string_view plan) {
    if (const std::string problem = loop_.world().fail_calls(plan); !problem.empty()) note(problem);
  }
  ~WorldStage() override { clear(); }

  Loop& loop() override { return *loop_; }
  void pass(Nanos span) override { loop_.advance(span); }
  void set_exhausted(bool on) override {
    sim::Host& host = loop_.host();
    host.limit_descriptors(on ? host.open_descriptors() : 1'000'000);
  }

 protected:
  bool wait(const std::function<bool()>& condition) override {
    return loop_.world().run_until(condition, 5s) == sim::Outcome::done;
  }

 private:
  sim::TestLoop loop_;
};

}  // namespace

std::unique_ptr<Stage> real_stage(std::string_view backend) {
  return std::make_unique<RealStage>(backend);
}

std::unique_ptr<Stage> world_stage() { return world_stage(""); }

std::unique_ptr<Stage> world_stage(std::string_view plan) {
  return std::make_unique<WorldStage>(plan);
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const auto& some : {endings(), transfers(), arrivals(), packets(), ports()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace spate::parity
