// Layers with their own structs: nodes inside a 128-byte struct as libevent's, and inside 48-byte
// structs as libev's; delivery through a Dispatcher; no allocation besides the struct.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/layer/layer.h"
#include "tests/support/running.h"
#include "tests/support/scripted.h"

namespace spate {
namespace {

using testing::runs_out;
using testing::ScriptedBackend;
using testing::ScriptedClock;
using testing::ScriptedLoop;

constexpr short kTimeout = 1;
constexpr short kRead = 2;
constexpr short kWrite = 4;
constexpr short kPersist = 16;

// ---- libevent's layout: one struct for a descriptor, a timeout, or whichever comes first

// The user's members are at libevent's offsets. The nodes overlap the rest, and their `context` and
// `callback`, which core reads in the default dispatch only, overlap members of the user's.
struct BigEvent {
  alignas(8) unsigned char bytes[128];

  using Callback = void (*)(int fd, short what, void* argument);

  template <class T>
  T& at(std::size_t offset) {
    return *reinterpret_cast<T*>(bytes + offset);
  }
  Callback& callback() { return at<Callback>(24); }
  void*& argument() { return at<void*>(32); }
  int& fd() { return at<int>(56); }
  void*& base() { return at<void*>(64); }
  short& events() { return at<short>(104); }
  short& result() { return at<short>(106); }

  static constexpr std::size_t kFdNode = 40;
  static constexpr std::size_t kTimerNode = 88;
  Node& activation() { return at<Node>(0); }
  FdNode& fd_node() { return at<FdNode>(kFdNode); }
  TimerNode& timer_node() { return at<TimerNode>(kTimerNode); }

  static BigEvent& of(Node& node) { return reinterpret_cast<BigEvent&>(node); }
  static BigEvent& of(FdNode& node) { return from(&node, kFdNode); }
  static BigEvent& of(TimerNode& node) { return from(&node, kTimerNode); }
  static BigEvent& from(void* node, std::size_t offset) {
    return *reinterpret_cast<BigEvent*>(static_cast<unsigned char*>(node) - offset);
  }
};
static_assert(sizeof(BigEvent) == 128);
static_assert(BigEvent::kTimerNode + offsetof(TimerNode, repeat) == sizeof(BigEvent));
static_assert(BigEvent::kFdNode + sizeof(FdNode) == BigEvent::kTimerNode);

class BigLayer final : public Dispatcher {
 public:
  void ready(Loop& loop, FdNode& node, Events events) override {
    BigEvent& event = BigEvent::of(node);
    short what = 0;
    if (any(events & Events::read)) what = static_cast<short>(what | kRead);
    if (any(events & Events::write)) what = static_cast<short>(what | kWrite);
    activate(loop, event, what);
  }
  void expired(Loop& loop, TimerNode& node) override {
    activate(loop, BigEvent::of(node), kTimeout);
  }
  // In a batch, as a binding takes them that enters its interpreter once.
  void run_pending(Loop& loop) override {
    Due due;
    while (loop.take(due)) batch_.push_back(&BigEvent::of(*due.node));
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (batch_[i] == nullptr) continue;
      BigEvent& event = *batch_[i];
      batch_[i] = nullptr;
      const short what = event.result();
      event.result() = 0;
      if ((event.events() & kPersist) == 0) remove(loop, event);
      event.callback()(event.fd(), what, event.argument());
    }
    batch_.clear();
  }
  void before_wait(Loop&) override { log += "<"; }
  void after_wait(Loop&) override { log += ">"; }

  static void assign(BigEvent& event, int fd, short events, BigEvent::Callback callback,
                     void* argument) {
    event = {};
    event.fd() = fd;
    event.events() = events;
    event.callback() = callback;
    event.argument() = argument;
    event.base() = argument;
    event.fd_node().fd = fd;
    Events wanted = Events::none;
    if ((events & kRead) != 0) wanted |= Events::read;
    if ((events & kWrite) != 0) wanted |= Events::write;
    event.fd_node().events = static_cast<std::uint32_t>(wanted) | kFdIsNew;
  }
  static bool add(Loop& loop, BigEvent& event, Nanos timeout) {
    if (event.fd() >= 0 && !loop.start(event.fd_node())) return false;
    return timeout == kForever || loop.restart(event.timer_node(), (loop.now() + timeout).count());
  }
  void remove(Loop& loop, BigEvent& event) {
    if (event.fd_node().head.active != 0) loop.stop(event.fd_node());
    if (event.timer_node().head.active != 0) loop.stop(event.timer_node());
    loop.clear_pending(event.activation());
    for (BigEvent*& waiting : batch_) {
      if (waiting == &event) waiting = nullptr;
    }
  }

  std::string log;

 private:
  static void activate(Loop& loop, BigEvent& event, short what) {
    event.result() = static_cast<short>(event.result() | what);
    ASSERT_TRUE(loop.feed(event.activation(), Events::custom));
  }

  std::vector<BigEvent*> batch_;
};

class BigLayerTest : public ::testing::Test {
 protected:
  struct Call {
    int fd;
    short what;
    bool operator==(const Call&) const = default;
  };

  // The nodes extend beyond the struct, so that a sanitizer reports any access to the part outside.
  std::unique_ptr<BigEvent> make(int fd, short events) {
    auto event = std::make_unique<BigEvent>();
    BigLayer::assign(*event, fd, events, on_event, this);
    return event;
  }
  static void on_event(int fd, short what, void* argument) {
    auto& self = *static_cast<BigLayerTest*>(argument);
    self.calls_.push_back({fd, what});
    if (self.victim_ != nullptr) self.layer_.remove(self.loop(), *self.victim_);
  }
  Loop& loop() { return *scripted_.loop; }
  void turn() { ASSERT_FALSE(loop().run(Run::no_wait)); }

  BigLayer layer_;
  ScriptedLoop scripted_{{.dispatcher = &layer_}};
  std::vector<Call> calls_;
  BigEvent* victim_ = nullptr;
};

TEST_F(BigLayerTest, MergesDescriptorAndTimeoutIntoOneActivation) {
  const auto event = make(1, kRead | kWrite | kPersist);
  ASSERT_TRUE(BigLayer::add(loop(), *event, std::chrono::milliseconds{1}));
  EXPECT_EQ(loop().active_count(), 2);
  turn();
  EXPECT_TRUE(calls_.empty());
  scripted_.backend->report(1, Events::read | Events::write);
  scripted_.clock.advance(std::chrono::milliseconds{2});
  turn();
  EXPECT_EQ(calls_, (std::vector<Call>{{1, kRead | kWrite | kTimeout}}));
  EXPECT_EQ(loop().active_count(), 1) << "the timer has expired, the descriptor persists";
  scripted_.backend->report(1, Events::read);
  turn();
  EXPECT_EQ(calls_.back(), (Call{1, kRead}));
  layer_.remove(loop(), *event);
  EXPECT_EQ(loop().active_count(), 0);
}

TEST_F(BigLayerTest, NonPersistentEventStopsBothItsNodes) {
  const auto event = make(1, kRead);
  ASSERT_TRUE(BigLayer::add(loop(), *event, std::chrono::seconds{1}));
  turn();
  scripted_.backend->report(1, Events::read);
  EXPECT_TRUE(runs_out(loop(), Run::no_wait));
  EXPECT_EQ(calls_, (std::vector<Call>{{1, kRead}}));
  EXPECT_EQ(event->fd_node().head.active, 0u);
  EXPECT_EQ(event->timer_node().head.active, 0u);
}

TEST_F(BigLayerTest, UserFieldsAreUnchanged) {
  const auto event = make(1, kRead | kPersist);
  ASSERT_TRUE(BigLayer::add(loop(), *event, std::chrono::milliseconds{1}));
  for (int i = 0; i < 5; ++i) {
    turn();
    scripted_.backend->report(1, Events::read);
    scripted_.clock.advance(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(event->callback(), &BigLayerTest::on_event);
  EXPECT_EQ(event->argument(), this);
  EXPECT_EQ(event->fd(), 1);
  EXPECT_EQ(event->base(), this);
  EXPECT_EQ(event->events(), kRead | kPersist);
  layer_.remove(loop(), *event);
}

TEST_F(BigLayerTest, EventStoppedAfterBatchingIsSkipped) {
  std::vector<std::unique_ptr<BigEvent>> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back(make(-1, 0));
    ASSERT_TRUE(BigLayer::add(loop(), *events.back(), Nanos{i}));
  }
  victim_ = events[2].get();
  scripted_.clock.advance(std::chrono::milliseconds{1});
  EXPECT_TRUE(runs_out(loop(), Run::no_wait));
  EXPECT_EQ(calls_, (std::vector<Call>{{-1, kTimeout}, {-1, kTimeout}}));
}

TEST_F(BigLayerTest, EventStoppedBeforeTurnIsNotDelivered) {
  const auto event = make(-1, 0);
  loop().feed(event->activation(), Events::custom);
  layer_.remove(loop(), *event);
  EXPECT_TRUE(runs_out(loop(), Run::no_wait));
  EXPECT_TRUE(calls_.empty());
}

TEST_F(BigLayerTest, LayerIsNotifiedBeforeAndAfterEachWait) {
  const auto event = make(-1, 0);
  ASSERT_TRUE(BigLayer::add(loop(), *event, std::chrono::milliseconds{5}));
  layer_.log.clear();
  EXPECT_TRUE(runs_out(loop()));
  std::string expected;
  for (std::size_t i = 0; i < scripted_.backend->waits.size(); ++i) expected += "<>";
  EXPECT_EQ(layer_.log, expected);
  EXPECT_FALSE(expected.empty());
}

TEST_F(BigLayerTest, InternalNodesAreNotDelivered) {
  int called = 0;
  loop().post([&called] { ++called; });
  ASSERT_FALSE(loop().after(Nanos{0}, [&called] { ++called; }));
  turn();
  EXPECT_EQ(called, 2);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(BigLayerTest, StartAndStopNeedNoMemoryAndNoKernelCall) {
  constexpr std::size_t kEvents = 300;
  ASSERT_TRUE(loop().reserve(64, kEvents));
  std::vector<std::unique_ptr<BigEvent>> events;
  for (std::size_t i = 0; i < kEvents; ++i) {
    events.push_back(make(static_cast<int>(i % 3), kRead | kPersist));
  }
  turn();
  const KernelCalls before = loop().metrics().kernel_calls;
  FaultPlan plan;
  const FaultScope scope(plan);
  for (const auto& event : events) ASSERT_TRUE(BigLayer::add(loop(), *event, kForever));
  EXPECT_EQ(plan.calls(spate::SystemCall::allocate), 0u) << "descriptors";
  const auto time_all = [&] {
    for (const auto& event : events) {
      ASSERT_TRUE(BigLayer::add(loop(), *event, std::chrono::seconds{10}));
    }
  };
  time_all();
  EXPECT_LE(plan.calls(spate::SystemCall::allocate), 10u) << "a bucket grows; nothing is a timer's";
  const std::uint64_t grown = plan.calls(spate::SystemCall::allocate);
  for (const auto& event : events) layer_.remove(loop(), *event);
  time_all();
  EXPECT_EQ(plan.calls(spate::SystemCall::allocate), grown);
  EXPECT_EQ(loop().metrics().kernel_calls.modify, before.modify);
  for (const auto& event : events) layer_.remove(loop(), *event);
}

TEST_F(BigLayerTest, ForEachVisitsAllStartedEvents) {
  std::vector<std::unique_ptr<BigEvent>> events;
  constexpr Nanos kWaits[] = {Nanos{1}, std::chrono::milliseconds{3}, std::chrono::hours{1}};
  for (const Nanos wait : kWaits) {
    events.push_back(make(1, kRead | kPersist));
    ASSERT_TRUE(BigLayer::add(loop(), *events.back(), wait));
  }
  TimerNode parked{};
  parked.deadline = (loop().now() + std::chrono::hours{1}).count();
  ASSERT_TRUE(loop().start(parked));
  loop().park(parked);
  ASSERT_FALSE(loop().once(1, Events::write, kForever, [](Events) {})) << "the loop's own";
  std::vector<BigEvent*> shown;
  const auto show = [](void* context, auto& node) {
    static_cast<std::vector<BigEvent*>*>(context)->push_back(&BigEvent::of(node));
    return true;
  };
  bool (*show_fd)(void*, FdNode&) = show;
  bool (*show_timer)(void*, TimerNode&) = show;
  EXPECT_TRUE(loop().for_each(show_fd, &shown));
  EXPECT_EQ(shown, (std::vector{events[2].get(), events[1].get(), events[0].get()}));
  shown.clear();
  EXPECT_TRUE(loop().for_each(show_timer, &shown));
  std::sort(shown.begin(), shown.end(), [](BigEvent* a, BigEvent* b) {
    return a->timer_node().deadline < b->timer_node().deadline;
  });
  EXPECT_EQ(shown, (std::vector{events[0].get(), events[1].get(), events[2].get()}));
  bool (*refuse)(void*, TimerNode&) = [](void*, TimerNode&) { return false; };
  EXPECT_FALSE(loop().for_each(refuse, nullptr));
  for (const auto& event : events) layer_.remove(loop(), *event);
  loop().stop(parked);
}

// ---- libev's layout: the nodes are the structs

struct SmallWatcher {
  int active;
  int pending;
  int priority;
  int hole;
  void* data;
  void (*callback)(SmallWatcher* watcher, int events);
};
struct SmallIo {
  SmallWatcher watcher;
  SmallIo* next;
  int fd;
  int events;
};
struct SmallTimer {
  SmallWatcher watcher;
  std::int64_t at;
  double repeat;  // Another type than the node's: the layer implements repeating itself.
};
static_assert(sizeof(SmallIo) == sizeof(FdNode) && sizeof(SmallTimer) == sizeof(TimerNode));
static_assert(offsetof(SmallWatcher, priority) == offsetof(Node, priority));
static_assert(offsetof(SmallWatcher, data) == offsetof(Node, context));
static_assert(offsetof(SmallWatcher, callback) == offsetof(Node, callback));
static_assert(offsetof(SmallIo, fd) == offsetof(FdNode, fd));
static_assert(offsetof(SmallIo, events) == offsetof(FdNode, events));
static_assert(offsetof(SmallTimer, at) == offsetof(TimerNode, deadline));

class SmallLayer final : public Dispatcher {
 public:
  void expired(Loop& loop, TimerNode& node) override {
    auto& timer = reinterpret_cast<SmallTimer&>(node);
    if (timer.repeat > 0) {
      loop.restart(node, node.deadline + static_cast<std::int64_t>(timer.repeat * 1e9));
    }
    loop.feed(node.head, Events::timer);
  }
  void run_pending(Loop& loop) override {
    Due due;
    while (loop.take(due)) {
      auto* watcher = reinterpret_cast<SmallWatcher*>(due.node);
      watcher->callback(watcher, static_cast<int>(due.events));
    }
  }
};

struct Record {
  std::vector<int> events;
  static void note(SmallWatcher* watcher, int events) {
    static_cast<Record*>(watcher->data)->events.push_back(events);
  }
};

TEST(SmallLayerTest, DeliversToStructsThatEmbedNode) {
  SmallLayer layer;
  ScriptedLoop scripted({.dispatcher = &layer});
  Record io_record;
  Record timer_record;
  SmallIo io{{0, 0, 2, 0, &io_record, Record::note}, nullptr, 1, 0x1 | 0x80};
  SmallTimer timer{{0, 0, -2, 0, &timer_record, Record::note}, 0, 0.25};
  timer.at = (scripted.loop->now() + std::chrono::milliseconds{100}).count();
  auto& fd_node = reinterpret_cast<FdNode&>(io);
  auto& timer_node = reinterpret_cast<TimerNode&>(timer);
  ASSERT_TRUE(scripted.loop->start(fd_node));
  ASSERT_TRUE(scripted.loop->start(timer_node));
  EXPECT_NE(io.watcher.active, 0);
  EXPECT_EQ(io.events, 0x1) << "the mark of a new descriptor is taken off";
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  scripted.backend->report(1, Events::read);
  scripted.clock.advance(std::chrono::milliseconds{100});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(io_record.events, std::vector<int>{0x1});
  EXPECT_EQ(timer_record.events, std::vector<int>{0x100});
  EXPECT_EQ(timer.repeat, 0.25);
  scripted.clock.advance(std::chrono::milliseconds{249});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(timer_record.events.size(), 1u);
  scripted.clock.advance(std::chrono::milliseconds{1});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(timer_record.events.size(), 2u);
  scripted.loop->stop(fd_node);
  scripted.loop->stop(timer_node);
  EXPECT_EQ(io.watcher.active, 0);
  EXPECT_TRUE(runs_out(*scripted.loop, Run::no_wait));
}

TEST(SmallLayerTest, CallsByPriorityAndSkipsNodesStoppedByEarlierCall) {
  SmallLayer layer;
  ScriptedLoop scripted({.dispatcher = &layer});
  struct Both {
    Loop& loop;
    SmallTimer low;
    int calls = 0;
  } both{*scripted.loop, {}};
  both.low.watcher = {0, 0, -1, 0, &both, [](SmallWatcher*, int) { ADD_FAILURE(); }};
  SmallTimer high{{0, 0, 1, 0, &both,
                   [](SmallWatcher* watcher, int) {
                     auto& state = *static_cast<Both*>(watcher->data);
                     ++state.calls;
                     state.loop.clear_pending(reinterpret_cast<Node&>(state.low));
                   }},
                  0,
                  0};
  ASSERT_TRUE(scripted.loop->start(reinterpret_cast<TimerNode&>(both.low)));
  ASSERT_TRUE(scripted.loop->start(reinterpret_cast<TimerNode&>(high)));
  EXPECT_TRUE(runs_out(*scripted.loop, Run::no_wait));
  EXPECT_EQ(both.calls, 1);
}

}  // namespace
}  // namespace spate
