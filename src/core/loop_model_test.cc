// A million random operations on a whole loop, compared with a model that computes which watchers
// must be called with which events in each turn.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "spate/io.h"
#include "spate/layer/layer.h"
#include "tests/support/pending_model.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/scripted.h"

namespace spate {
namespace {

using testing::PendingModel;
using testing::Random;
using testing::ScriptedClock;

constexpr int kFiles = 12;
constexpr int kNullFile = -1;
constexpr std::uint32_t kBudget = 6;

class Model;

// Reports the events that the model generates, and has the model check the registrations.
class ModelBackend final : public Backend {
 public:
  explicit ModelBackend(Model& model) : model_(model) {}

  std::string_view name() const override { return "model"; }
  long modify(int fd, Events before, Events after, std::uint32_t generation) override;
  long wait(Nanos timeout, ReadyList& ready) override;
  std::error_code reopen() override {
    registered.clear();
    return {};
  }

  struct Registration {
    Events events;
    std::uint32_t generation;
    int life;  // The life of the number in the model: it counts how often the number was reopened.
  };
  std::map<int, Registration> registered;
  std::vector<std::pair<int, std::uint32_t>> past;  // Generations that are no longer current.

 private:
  Model& model_;
};

// With few watchers and no priorities, most events are called without being queued.
struct Shape {
  int watchers;
  bool has_priorities;
};
constexpr Shape kShapes[] = {{40, true}, {40, false}, {8, false}};

class Model {
 public:
  Model(std::uint64_t seed, const Shape& shape)
      : random_(seed), shape_(shape), watchers_(static_cast<std::size_t>(shape.watchers)) {
    null_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int& fd : files_) fd = ::dup(null_);
    auto backend = std::make_unique<ModelBackend>(*this);
    backend_ = backend.get();
    loop_ = std::move(
        *NodeLoop::create(std::move(backend), {.loop = {.budget = kBudget, .clock = &clock_}}));
    for (int i = 0; i < shape_.watchers; ++i) make_watcher(i);
  }
  ~Model() {
    for (const int fd : files_) ::close(fd);
    ::close(null_);
  }

  void run(int operations) {
    while (operations_ < operations && !::testing::Test::HasFatalFailure()) {
      for (std::size_t i = random_.below(12); i > 0; --i) operate();
      turn();
      check();
    }
  }

  int called() const { return called_; }
  int reported() const { return reported_; }
  int refused() const { return refused_; }

  // ---- called by the backend

  int life_of(int fd) const {
    const auto life = lives_.find(fd);
    return life == lives_.end() ? 0 : life->second;
  }
  // Returns whether this registration is refused. Its watchers then end with an error.
  bool refuses(int fd) {
    if (std::find(files_, files_ + kFiles, fd) == files_ + kFiles || !random_.one_in(40))
      return false;
    ++refused_;
    for (const int id : on_[fd]) {
      Watcher& watcher = at(id);
      watcher.active = false;
      pending_.feed(id, watcher.io->priority(), Events::error | watcher.wanted);
    }
    on_[fd].clear();
    return true;
  }
  void make_up(ReadyList& ready);
  void check_registrations() const;

 private:
  struct Watcher {
    std::unique_ptr<Io> io;
    int fd = kNullFile;
    int life = 0;  // The life of the number when the watcher was set.
    Events wanted = Events::none;
    bool active = false;
  };

  Watcher& at(int id) { return watchers_[static_cast<std::size_t>(id)]; }
  const Watcher& at(int id) const { return watchers_[static_cast<std::size_t>(id)]; }
  void make_watcher(int id) {
    at(id) = {};
    at(id).io =
        std::make_unique<Io>(*loop_, [this](Io& io, Events events) { on_call(io, events); });
    aim(id);
  }
  int id_of(const Io& io) const {
    for (int i = 0; i < shape_.watchers; ++i) {
      if (at(i).io.get() == &io) return i;
    }
    return -1;
  }
  Events some_events() { return static_cast<Events>(random_.between(1, 15)); }

  // Every call must be the next one in the model.
  void on_call(Io& io, Events events) {
    ++called_;
    const std::optional<PendingModel::Item> expected = pending_.take();
    ASSERT_TRUE(expected) << "one call too many";
    ASSERT_EQ(id_of(io), expected->id);
    ASSERT_EQ(static_cast<std::uint32_t>(events), static_cast<std::uint32_t>(expected->events));
    if (random_.one_in(8)) {
      ASSERT_FALSE(io.is_pending());  // Asking queues the remaining events.
    }
    if (any(events & Events::error)) {
      ASSERT_EQ(io.error(), std::error_code(ENOSPC, std::system_category()));
    }
    for (std::size_t i = random_.below(3); i > 0; --i) operate();
    if (loop_->depth() < 3 && random_.one_in(60)) turn();
  }

  void turn() {
    ASSERT_FALSE(loop_->run(Run::no_wait));
    ASSERT_TRUE(pending_.turn_is_over()) << "somebody was not called";
    ASSERT_EQ(loop_->has_work(), active_count() > 0 || pending_.size() > 0);
  }

  std::int64_t active_count() const {
    return std::count_if(watchers_.begin(), watchers_.end(),
                         [](const Watcher& watcher) { return watcher.active; });
  }
  void check() const {
    ASSERT_EQ(loop_->pending_count(), pending_.size());
    ASSERT_EQ(loop_->active_count(), active_count());
    for (int i = 0; i < shape_.watchers; ++i) {
      ASSERT_EQ(at(i).io->is_active(), at(i).active) << i;
      ASSERT_EQ(at(i).io->is_pending(), pending_.has(i)) << i;
    }
  }

  // ---- operations

  void operate();
  void aim(int id) {
    Watcher& watcher = at(id);
    watcher.fd = files_[random_.below(kFiles)];
    watcher.life = life_of(watcher.fd);
    watcher.wanted = some_events();
    watcher.io->set(watcher.fd, watcher.wanted);
  }
  void start(int id) {
    Watcher& watcher = at(id);
    if (watcher.active) return;
    // As a program must after closing the number.
    if (watcher.life != life_of(watcher.fd)) aim(id);
    ASSERT_TRUE(watcher.io->start());
    watcher.active = true;
    put_first(id);
  }
  // The watcher that was started last is called first.
  void put_first(int id) {
    std::vector<int>& there = on_[at(id).fd];
    there.insert(there.begin(), id);
  }
  void stop(int id) {
    at(id).io->stop();
    mark_stopped(id);
  }
  void mark_stopped(int id) {
    Watcher& watcher = at(id);
    pending_.remove(id);
    if (watcher.active) std::erase(on_[watcher.fd], id);
    watcher.active = false;
  }
  void modify(int id) {
    Watcher& watcher = at(id);
    watcher.wanted = some_events();
    watcher.io->modify(watcher.wanted);
    pending_.drop(id, kIoEvents & ~watcher.wanted);
  }
  void set_priority(int id) {
    Watcher& watcher = at(id);
    if (!shape_.has_priorities || pending_.has(id)) return;
    watcher.io->set_priority(random_.between(-3, 3));
    if (!watcher.active) return;
    std::erase(on_[watcher.fd], id);  // As if it were stopped and started.
    put_first(id);
  }
  void feed(int id) {
    const auto events = static_cast<Events>(0x1000000u << random_.below(3));
    ASSERT_TRUE(at(id).io->feed(events));
    pending_.feed(id, at(id).io->priority(), events);
  }
  // The number may stay the same and refer to another file.
  void close_and_reopen(int& fd) {
    const std::vector<int> there = on_[fd];
    if (there.size() == 1 && random_.one_in(2)) {
      at(there[0]).io->stop_before_close();
      mark_stopped(there[0]);
    } else {
      for (const int id : there) stop(id);
    }
    ::close(fd);
    ++lives_[fd];
    fd = ::dup(null_);
  }

  Random random_;
  const Shape shape_;
  ScriptedClock clock_;
  ModelBackend* backend_;
  std::unique_ptr<Loop> loop_;
  PendingModel pending_;
  std::vector<Watcher> watchers_;
  int null_;
  int files_[kFiles];
  std::map<int, int> lives_;
  std::map<int, std::vector<int>> on_;  // The active watchers of a descriptor, last started first.
  int operations_ = 0;
  int called_ = 0;
  int reported_ = 0;
  int refused_ = 0;
};

void Model::operate() {
  ++operations_;
  const int id = random_.between(0, shape_.watchers - 1);
  Watcher& watcher = at(id);
  switch (random_.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return start(id);
    case 4:
    case 5:
      return stop(id);
    case 6:
      stop(id);
      return start(id);
    case 7:
    case 8:
      return modify(id);
    case 9:
      stop(id);
      aim(id);
      return start(id);
    case 10:
    case 11:
      return feed(id);
    case 12:
      ASSERT_EQ(watcher.io->clear_pending(), pending_.remove(id));
      return;
    case 13:
      return set_priority(id);
    case 14:
      if (random_.one_in(2)) return close_and_reopen(files_[random_.below(kFiles)]);
      return;
    default:
      if (!random_.one_in(4)) return;
      mark_stopped(id);
      make_watcher(id);
  }
}

// Called in the backend's wait(): generates the ready descriptors, and computes which watchers must
// be called for them.
void Model::make_up(ReadyList& ready) {
  check_registrations();
  if (!backend_->past.empty() && random_.one_in(3)) {
    const auto& [fd, generation] = backend_->past[random_.below(backend_->past.size())];
    ready.push({fd, generation, kIoEvents, 0});
  }
  for (const auto& [fd, registration] : backend_->registered) {
    if (!random_.one_in(5)) continue;
    Events events = some_events() & registration.events;
    if (random_.one_in(10)) events = kHungUp;
    if (!any(events)) continue;
    ready.push({fd, registration.generation, events, 0});
    ++reported_;
    for (const int id : on_[fd]) {
      const Events wanted = at(id).wanted;
      const Events given =
          any(wanted & events) || !any(events & Events::error) ? wanted & events : wanted;
      if (any(given)) pending_.feed(id, at(id).io->priority(), given);
    }
  }
  pending_.begin_turn(kBudget);
}

void Model::check_registrations() const {
  for (const int fd : files_) {
    Events wanted = Events::none;
    const auto there = on_.find(fd);
    if (there != on_.end()) {
      for (const int id : there->second) wanted |= at(id).wanted;
    }
    const auto registration = backend_->registered.find(fd);
    const bool known = registration != backend_->registered.end();
    ASSERT_EQ(known ? registration->second.events : Events::none, wanted) << "descriptor " << fd;
    if (known) {
      ASSERT_EQ(registration->second.life, life_of(fd)) << "the kernel knows another file";
    }
  }
}

long ModelBackend::modify(int fd, Events, Events after, std::uint32_t generation) {
  ++calls_.modify;
  const auto known = registered.find(fd);
  if (known != registered.end()) {
    if (known->second.generation != generation) past.emplace_back(fd, known->second.generation);
    if (past.size() > 50) past.erase(past.begin());
    registered.erase(known);
  }
  if (!any(after)) return 0;
  if (model_.refuses(fd)) return -ENOSPC;
  registered[fd] = {after, generation, model_.life_of(fd)};
  return 0;
}

long ModelBackend::wait(Nanos, ReadyList& ready) {
  ++calls_.wait;
  model_.make_up(ready);
  return 0;
}

TEST(LoopModel, AgreesWithLoopOverMillionRandomOperations) {
  constexpr std::uint64_t kSeeds = testing::kIsSanitized ? 4 : 12;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Model model(seed, kShapes[seed % std::size(kShapes)]);
    model.run(100'000);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_GT(model.called(), 10'000);
    EXPECT_GT(model.reported(), 5'000);
    EXPECT_GT(model.refused(), 100);
  }
}

}  // namespace
}  // namespace spate
