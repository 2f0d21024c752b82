// Watch against a model: random changes of a tree, on a simulated disk and on the system's. The
// names that a program knows from the events are those on the disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/sim/disk.h"
#include "spate/sim/world.h"
#include "spate/timer.h"
#include "spate/watch.h"
#include "tests/support/make_loop.h"
#include "tests/support/own_tree.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Relative paths, sorted. The path of a directory ends with a slash.
using Names = std::set<std::string>;

// A directory in which "in" is watched, and "out" is not.
class Store {
 public:
  virtual ~Store() = default;
  virtual std::string root() const = 0;  // The watched directory.
  virtual Names list() const = 0;        // The names below it.
  virtual void write(const std::string& path) = 0;
  virtual void make_directory(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;
};

class SimStore final : public Store {
 public:
  explicit SimStore(sim::Disk& disk) : disk_(disk) {}
  std::string root() const override { return "/data/in"; }
  Names list() const override {
    Names names;
    for (const std::string& path : disk_.list()) {
      if (path.starts_with("in/") && path.size() > 3) names.insert(path.substr(3));
    }
    return names;
  }
  void write(const std::string& path) override { ignore(disk_.write(path, "text")); }
  void make_directory(const std::string& path) override { ignore(disk_.make_directory(path)); }
  void rename(const std::string& from, const std::string& to) override {
    ignore(disk_.rename(from, to));
  }
  void remove(const std::string& path) override { ignore(disk_.remove(path)); }

 private:
  static void ignore(std::error_code /*error*/) {}

  sim::Disk& disk_;
};

class SystemStore final : public Store {
 public:
  std::string root() const override { return tree_.at("in"); }
  Names list() const override {
    Names names;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root()))
      names.insert(entry.path().string().substr(root().size() + 1) +
                   (entry.is_directory() ? "/" : ""));
    return names;
  }
  void write(const std::string& path) override {
    const int fd =
        ::open(tree_.at(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return;
    EXPECT_EQ(::write(fd, "text", 4), 4);
    ::close(fd);
  }
  void make_directory(const std::string& path) override {
    std::error_code error;
    fs::create_directory(tree_.at(path), error);
  }
  void rename(const std::string& from, const std::string& to) override {
    std::error_code error;
    fs::rename(tree_.at(from), tree_.at(to), error);
  }
  void remove(const std::string& path) override {
    std::error_code error;
    fs::remove(tree_.at(path), error);
  }

 private:
  OwnTree tree_;
};

// The names as a program knows them from the events. After an overflow it looks at the disk, unless
// everything that exists is reported to it.
class NamesModel {
 public:
  NamesModel(const Store& store, bool looks) : store_(store), looks_(looks) {}

  const Names& names() const { return names_; }

  void apply(const WatchEvent& event) {
    const std::string path(event.path);
    switch (event.change) {
      case Change::created:
        add(path, event.is_directory);
        break;
      case Change::removed:
        remove(path);
        break;
      case Change::moved:
        move(std::string(event.old_path), path, event.is_directory);
        break;
      case Change::overflow:
        looks_ ? look(path) : remove(path);
        break;
      default:
        break;
    }
  }
  // Looks at everything below a directory.
  void look(const std::string& path) {
    const std::string prefix = path.empty() ? path : path + '/';
    remove(path);
    for (const std::string& name : store_.list()) {
      if (name.starts_with(prefix)) names_.insert(name);
    }
  }

 private:
  void add(const std::string& path, bool is_directory) {
    remove(path);
    names_.insert(is_directory ? path + '/' : path);
  }
  void remove(const std::string& path) {
    names_.erase(path);
    std::erase_if(names_, [&](const std::string& name) {
      return path.empty() || name.starts_with(path + '/');
    });
  }
  void move(const std::string& from, const std::string& to, bool is_directory) {
    Names below;
    for (const std::string& name : names_) {
      if (name.starts_with(from + '/')) below.insert(to + name.substr(from.size()));
    }
    remove(from);
    remove(to);
    names_.insert(is_directory ? to + '/' : to);
    if (is_directory) names_.merge(below);
  }

  const Store& store_;
  const bool looks_;
  Names names_;
};

// Changes a tree of few names, so that they often meet: some changes in each turn of the loop.
class TreeChanges {
 public:
  TreeChanges(Store& store, std::uint64_t seed) : store_(store), random_(seed) {}

  void change() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        return store_.make_directory(path());
      case 2:
        return make_directories(path());
      case 3:
        return store_.write(path());
      case 4:
      case 5: {
        const std::string from = path();
        return store_.rename(from, path());
      }
      case 6:
        return store_.remove(path());
      default:
        return random_.one_in(2) ? remove_all() : store_.write(path());
    }
  }

 private:
  // One in eight is outside of the watch.
  std::string path() {
    std::string path = random_.one_in(8) ? "out" : "in";
    for (int depth = random_.between(1, 4); depth > 0; --depth)
      path += '/' + std::string(1, static_cast<char>('a' + random_.below(3)));
    return path;
  }
  void make_directories(const std::string& path) {
    for (std::size_t at = path.find('/', 3); at != path.npos; at = path.find('/', at + 1))
      store_.make_directory(path.substr(0, at));
    store_.make_directory(path);
  }
  // Removes a directory with all below it.
  void remove_all() {
    const std::string prefix(1, static_cast<char>('a' + random_.below(3)));
    const Names names = store_.list();
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (name->starts_with(prefix)) store_.remove("in/" + *name);
    }
  }

  Store& store_;
  Random random_;
};

// A program that watches, and changes that meet its turns.
class WatchingProgram {
 public:
  WatchingProgram(Loop& loop, Store& store, std::uint64_t seed)
      : changes_(store, seed),
        random_(seed),
        is_existing_(random_.one_in(2)),
        model_(store, !is_existing_),
        turn_(loop, [this] { change(); }) {
    for (const char* directory : {"in", "out"}) store.make_directory(directory);
    for (int left = random_.between(0, 20); left > 0; --left) changes_.change();
    auto started =
        Watch::start(loop, store.root(),
                     [this](const Result<std::span<const WatchEvent>>& events) { take(events); },
                     {.existing = is_existing_});
    EXPECT_TRUE(started) << started.error().message();
    if (started) watch_ = *std::move(started);
  }

  // Changes something in the next turns.
  void start_changes() {
    turns_ = random_.between(1, 12);
    EXPECT_TRUE(turn_.start(0ns));
  }
  bool is_changing() const { return turn_.is_active(); }
  bool is_ready() const { return is_ready_; }
  const Names& names() const { return model_.names(); }
  std::string text() const { return text_; }

 private:
  void change() {
    for (std::size_t left = random_.below(8); left > 0; --left) changes_.change();
    if (--turns_ > 0) EXPECT_TRUE(turn_.start(0ns));
  }
  void take(const Result<std::span<const WatchEvent>>& events) {
    ASSERT_TRUE(events) << events.error().message();
    for (const WatchEvent& event : *events) {
      text_ += std::string(name_of(event.change)) + (event.is_found ? "* " : " ") +
               std::string(event.old_path) + " " + std::string(event.path) + "\n";
      model_.apply(event);
      if (event.change != Change::ready) continue;
      if (!std::exchange(is_ready_, true) && !is_existing_) model_.look("");
    }
  }

  TreeChanges changes_;
  Random random_;
  const bool is_existing_;
  NamesModel model_;
  Timer turn_;
  Watch watch_;
  int turns_ = 0;
  bool is_ready_ = false;
  std::string text_;
};

constexpr int kRounds = 6;

void run_simulated(std::uint64_t seed, std::size_t max_queued_events) {
  sim::World world(seed);
  sim::Host& host = world.add_host("here");
  sim::Disk& disk = host.mount("/data", {.max_queued_events = max_queued_events});
  SimStore store(disk);
  std::unique_ptr<WatchingProgram> program;
  host.run([&](Loop& loop) { program = std::make_unique<WatchingProgram>(loop, store, seed); });
  for (int round = 0; round < kRounds; ++round) {
    host.run([&](Loop&) { program->start_changes(); });
    ASSERT_EQ(world.run_for(100ms), sim::Outcome::limit) << "seed " << seed;
    ASSERT_TRUE(program->is_ready());
    ASSERT_FALSE(program->is_changing()) << "seed " << seed << ", round " << round;
    ASSERT_EQ(program->names(), store.list()) << "seed " << seed << ", round " << round << "\n"
                                              << program->text();
  }
  host.run([&](Loop&) { program.reset(); });
}

void run_on_system(std::uint64_t seed) {
  SystemStore store;
  const std::unique_ptr<Loop> loop = make_loop();
  WatchingProgram program(*loop, store, seed);
  Timer poll(*loop, [] {});
  ASSERT_TRUE(poll.start(1ms, 1ms));
  for (int round = 0; round < kRounds; ++round) {
    program.start_changes();
    const auto is_done = [&] {
      return program.is_ready() && !program.is_changing() && program.names() == store.list();
    };
    // The limit only ends a test that fails.
    for (int left = 10'000; left > 0 && !is_done(); --left) loop->run(Run::once);
    ASSERT_EQ(program.names(), store.list()) << "seed " << seed << ", round " << round << "\n"
                                             << program.text();
  }
}

TEST(WatchTree, NamesAreThoseOfSimulatedDisk) {
  for (const std::uint64_t seed : seeds(200)) {
    run_simulated(seed, 16384);
    if (HasFatalFailure()) break;
  }
}

TEST(WatchTree, NamesAreThoseOfSimulatedDiskAfterOverflow) {
  for (const std::uint64_t seed : seeds(200)) {
    run_simulated(seed, 1 + seed % 16);
    if (HasFatalFailure()) break;
  }
}

TEST(WatchTree, NamesAreThoseOfSystem) {
  for (const std::uint64_t seed : seeds(50)) {
    run_on_system(seed);
    if (HasFatalFailure()) break;
  }
}

}  // namespace
}  // namespace spate::testing
