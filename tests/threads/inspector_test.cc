// The Inspector and loops on other threads: loops that block, loops that end, and random ones.
#include "spate/http/inspector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "spate/http/server.h"
#include "spate/timer.h"
#include "support/json.h"
#include "support/random.h"
#include "support/seeds.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Inspector;

// Sends one request, and keeps the response.
class Onlooker final : public StreamHandler {
 public:
  Onlooker(http::Server& server, Loop& loop, std::string_view path) {
    auto [mine, theirs] = must(Stream::memory_pair(loop));
    stream_ = std::move(mine);
    stream_.start(*this);
    server.add(std::move(theirs));
    stream_.write("GET " + std::string(path) + " HTTP/1.0\r\n\r\n");
  }
  std::size_t on_data(Bytes bytes) override {
    if (is_watching_only) received.clear();
    received += text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_closed = true; }
  Stream& stream() { return stream_; }

  std::string received;
  bool is_closed = false;
  bool is_watching_only = false;

 private:
  Stream stream_;
};

class InspectorThreads : public ::testing::Test {
 protected:
  void inspect(Nanos timeout) {
    inspector_.emplace(
        must(Inspector::create(*loop_, {.period = 5ms, .response_timeout = timeout})));
  }
  Json state() {
    Onlooker onlooker(server_, *loop_, "/state.json");
    run_until([&] { return onlooker.is_closed; });
    const std::size_t body = onlooker.received.find("\r\n\r\n");
    return JsonReader(std::string_view(onlooker.received).substr(body + 4)).read().value_or(Json());
  }
  std::string status_of(std::size_t loop) { return state()["loops"][loop]["status"].text; }
  void run_until(const std::function<bool()>& done) {
    bool late = false;
    Timer limit(*loop_, [&late] { late = true; });
    limit.start(30s);
    while (!done() && !late) loop_->run(Run::once);
    EXPECT_TRUE(done());
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::optional<Inspector> inspector_;
  http::Server server_ = must(http::Server::create(
      *loop_, [this](Exchange exchange) { inspector_->serve(std::move(exchange)); }));
};

TEST_F(InspectorThreads, BlockedWorkerIsShownWithItsCallback) {
  inspect(20ms);
  const auto workers = must(Workers::create({.threads = 2}));
  inspector_->add("workers", *workers);
  run_until([&] { return status_of(0) == "responsive" && status_of(1) == "responsive"; });
  Onlooker viewer(server_, *loop_, "/events");
  std::atomic<bool> is_measured{false};
  run_until([&] {
    workers->post(1, [&] { is_measured = workers->loop(1).is_measuring_callbacks(); });
    state();
    return is_measured.load();
  });
  std::latch end(1);
  workers->post(1, [&] { workers->loop(1).after(0ns, [&] { end.wait(); }); });
  Json blocked;
  run_until([&] {
    blocked = state()["loops"][1];
    return blocked["status"].text == "blocked" && blocked.has("running");
  });
  EXPECT_EQ(blocked["running"]["kind"].text, "Timer");
  EXPECT_GE(blocked["silent"].number, 0.02);
  run_until([&] { return status_of(0) == "responsive"; });
  end.count_down();
  run_until([&] { return status_of(1) == "responsive"; });
  inspector_.reset();  // Before the loops that it shows.
}

TEST_F(InspectorThreads, EndedWorkersAreShownAsEnded) {
  inspect(10s);
  const auto workers = must(Workers::create({.threads = 2}));
  inspector_->add("workers", *workers);
  EXPECT_EQ(status_of(1), "responsive");
  EXPECT_TRUE(workers->stop(0s));
  const Json loop = state()["loops"][1];
  EXPECT_EQ(loop["status"].text, "ended");
  EXPECT_TRUE(loop.has("turns")) << "what it told last";
  inspector_.reset();
}

TEST_F(InspectorThreads, InspectorMayRunOnLoopOfWorker) {
  const auto workers = must(Workers::create({.threads = 2}));
  std::atomic<int> responsive{0};
  std::latch done(1);
  workers->post(0, [&] {
    struct Inside {
      explicit Inside(Loop& loop) : inspector(must(Inspector::create(loop))) {}
      Inspector inspector;
      http::Server server;
      std::optional<Onlooker> onlooker;
      std::optional<Timer> look;
    };
    auto* inside = new Inside(workers->loop(0));
    inside->inspector.add("workers", *workers);
    inside->server = must(http::Server::create(workers->loop(0), [inside](Exchange exchange) {
      inside->inspector.serve(std::move(exchange));
    }));
    inside->onlooker.emplace(inside->server, workers->loop(0), "/state.json");
    struct Wait {
      Inside* inside;
      std::atomic<int>& responsive;
      std::latch& done;
    };
    auto* wait = new Wait{inside, responsive, done};
    inside->look.emplace(workers->loop(0), [wait] {
      Inside& seen = *wait->inside;
      if (!seen.onlooker->is_closed) return;
      const std::string& text = seen.onlooker->received;
      for (std::size_t at = 0; (at = text.find("\"responsive\"", at)) != std::string::npos; ++at)
        ++wait->responsive;
      std::latch& end = wait->done;
      delete wait->inside;
      delete wait;
      end.count_down();
    });
    inside->look->start(0ns, 1ms);
  });
  done.wait();
  EXPECT_EQ(responsive, 2);
}

// Loops and viewers start, block and end while requests arrive.
class InspectorAtRandom : public InspectorThreads,
                          public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  struct Team {
    std::string name;
    std::unique_ptr<Workers> workers;
    bool has_stopped = false;
  };

  void renew() {
    inspect(Nanos{random_.below(3) * 1ms});
    for (Team& team : teams_) inspector_->add(team.name, *team.workers);
  }
  void add_team() {
    if (teams_.size() == 3) return;
    teams_.push_back({std::to_string(++last_), must(Workers::create({.threads = 2})), false});
    inspector_->add(teams_.back().name, *teams_.back().workers);
  }
  void change(Team& team) {
    switch (random_.below(3)) {
      case 0:
        team.workers->stop(random_.below(2) * 1ms);
        team.has_stopped = true;
        return;
      case 1:
        inspector_->remove(team.name);
        teams_.remove_if([&team](const Team& each) { return &each == &team; });
        return;
      default:
        if (team.has_stopped) return;
        team.workers->post(static_cast<unsigned>(random_.below(2)),
                           [] { std::this_thread::sleep_for(2ms); });
    }
  }
  void look() {
    constexpr std::string_view kPaths[] = {"/events", "/events", "/metrics", "/state.json"};
    Onlooker& one = onlookers_.emplace_back(server_, *loop_, kPaths[random_.below(4)]);
    one.is_watching_only = true;
    if (random_.one_in(3)) one.stream().pause();
    if (onlookers_.size() > 12) onlookers_.pop_front();
  }
  void step() {
    switch (random_.below(12)) {
      case 0:
        return add_team();
      case 1:
      case 2:
        if (!teams_.empty()) change(*std::next(teams_.begin(), random_.span(std::ssize(teams_))));
        return;
      case 3:
      case 4:
        return look();
      case 5:
        return random_.one_in(2) ? onlookers_.clear() : void();
      case 6:
        return random_.one_in(8) ? renew() : void();
      default:
        loop_->run_for(random_.below(3) * 1ms);
    }
  }

  Random random_{GetParam()};
  std::list<Team> teams_;
  std::list<Onlooker> onlookers_;
  int last_ = 0;
};

TEST_P(InspectorAtRandom, RandomOperationsLeaveNoViewer) {
  renew();
  for (int i = 0; i < 500; ++i) step();
  onlookers_.clear();
  run_until([&] { return inspector_->viewers() == 0; });
  for (Team& team : teams_) inspector_->remove(team.name);
  teams_.clear();
  EXPECT_TRUE(state()["loops"].items.empty());
}
INSTANTIATE_TEST_SUITE_P(Seeds, InspectorAtRandom, ::testing::ValuesIn(seeds(2)));

TEST(RunningCallbackThreads, IsReadConsistentlyByAnotherThread) {
  const auto loop = must(Loop::create());
  loop->measure_callbacks(true);
  std::atomic<bool> is_over{false};
  Timer timer(*loop, [] {});
  Timer other(*loop, [] {});
  std::atomic<const void*> ends[2] = {};
  std::thread reader([&] {
    while (!is_over) {
      const auto running = loop->running_callback();
      if (!running) continue;
      EXPECT_TRUE(running->kind == "Timer" || running->kind == "feed()") << running->kind;
      const int which = running->kind == "Timer" ? 0 : 1;
      const void* known = nullptr;
      if (!ends[which].compare_exchange_strong(known, running->watcher)) {
        EXPECT_EQ(known, running->watcher) << "one half of each";
      }
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_TRUE(timer.feed(Events::timer));
    EXPECT_TRUE(other.feed());
    loop->run(Run::no_wait);
  }
  is_over = true;
  reader.join();
  EXPECT_FALSE(loop->running_callback());
}

}  // namespace
}  // namespace spate::testing
