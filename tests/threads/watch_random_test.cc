// Watch: the tree that a program builds from the events is the one on the disk, after random
// operations and after those of real programs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/seeds.h"
#include "tests/threads/watch_harness.h"

namespace spate::testing {
namespace {

namespace fs = std::filesystem;

// Performs random operations on a tree of few names, so that they often meet.
class TreeChanges {
 public:
  TreeChanges(const OwnTree& tree, std::uint64_t seed) : tree_(tree), random_(seed) {}

  void change() {
    std::error_code error;
    switch (random_.below(8)) {
      case 0:
      case 1:
        fs::create_directories(path(), error);
        break;
      case 2:
      case 3:
        std::ofstream(path(), std::ios::binary) << random_.next();
        break;
      case 4:
      case 5:
        fs::rename(path(), path(), error);
        break;
      case 6:
        fs::remove_all(path(), error);
        break;
      case 7:  // Out of the tree, and into it.
        fs::rename(path(), outside(), error);
        fs::rename(outside(), path(), error);
        break;
    }
  }

 private:
  std::string path() {
    std::string path;
    const std::size_t depth = 1 + random_.below(4);
    for (std::size_t i = 0; i < depth; ++i) path += (i == 0 ? "" : "/") + name();
    return tree_.at(path);
  }
  std::string name() { return std::string(1, static_cast<char>('a' + random_.below(3))); }
  std::string outside() { return tree_.at("../" + name()); }

  const OwnTree& tree_;
  Random random_;
};

class WatchRandomTest : public WatchTest {
 protected:
  // Runs the loop while `work` runs on a thread, and until the trees are equal.
  template <class Work>
  void run_beside(Work work) {
    std::atomic<bool> is_over = false;
    std::thread thread([&] {
      work();
      is_over = true;
    });
    EXPECT_TRUE(run_until([&] { return is_over.load(); }));
    thread.join();
    expect_convergence();
  }
  // The loop waits for events, so a timer wakes it.
  template <class Done>
  bool run_until(Done done) {
    Timer poll(*loop_, [] {});
    EXPECT_TRUE(poll.start(std::chrono::milliseconds(1), std::chrono::milliseconds(1)));
    return WatchTest::run_until(done);
  }
};

TEST_F(WatchRandomTest, TreesAreEqualAfterOperationsBetweenTurns) {
  for (const std::uint64_t seed : seeds(8)) {
    SCOPED_TRACE(seed);
    watch();
    TreeChanges changes(tree_, seed);
    Random random(seed);
    for (int round = 0; round < 40 && !HasFailure(); ++round) {
      for (std::size_t left = random.below(20); left > 0; --left) {
        changes.change();
        if (random.one_in(3)) {
          EXPECT_FALSE(loop_->run(Run::no_wait));
        }
      }
      expect_convergence();
    }
  }
}

TEST_F(WatchRandomTest, TreesAreEqualAfterOperationsOfOtherThreads) {
  for (const std::uint64_t seed : seeds(8)) {
    SCOPED_TRACE(seed);
    watch();
    run_beside([&] {
      std::vector<std::thread> others;
      for (std::uint64_t i = 0; i < 3; ++i) {
        others.emplace_back([&, i] {
          TreeChanges changes(tree_, seed * 10 + i);
          for (int left = 500; left > 0; --left) changes.change();
        });
      }
      for (std::thread& other : others) other.join();
    });
  }
}

class WatchProgramsTest : public WatchRandomTest {
 protected:
  void run_program(const std::string& command) {
    SCOPED_TRACE(command);
    const std::string line = "cd '" + tree_.root() + "' && " + command;
    run_beside([&] { EXPECT_EQ(std::system(line.c_str()), 0); });
  }
};

TEST_F(WatchProgramsTest, TreesAreEqualAfterCopiesMovesAndRemovals) {
  for (int i = 0; i < 50; ++i)
    tree_.write("../source/" + std::to_string(i % 7) + "/x/" + std::to_string(i), "text");
  watch();
  run_program("cp -r ../source one");
  run_program("cp -r one two; mv two one/3/x/");
  run_program("mv one ../elsewhere && mv ../elsewhere back");
  run_program("rm -r back");
}

TEST_F(WatchProgramsTest, TreesAreEqualAfterArchives) {
  for (int i = 0; i < 50; ++i)
    tree_.write("../source/" + std::to_string(i % 7) + "/x/" + std::to_string(i), "text");
  watch();
  run_program("tar cf all.tar -C .. source && tar xf all.tar && rm all.tar");
  run_program("tar cf ../all.tar source && rm -r source && tar xf ../all.tar");
}

TEST_F(WatchProgramsTest, TreesAreEqualAfterEditors) {
  tree_.write("conf", "old\n");
  watch();
  run_program("sed -i s/old/new/ conf");
  EXPECT_EQ(model_.entries().at("conf"), "new\n");
  run_program("printf newer > conf.swp && mv conf conf~ && mv conf.swp conf && rm conf~");
  EXPECT_EQ(model_.entries().at("conf"), "newer");
}

TEST_F(WatchProgramsTest, TreesAreEqualAfterGit) {
  if (std::system("git --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "git is missing: apt install git";
  watch();
  run_program(
      "git init -q . && git config user.email a@example.org && git config user.name a && "
      "git config gc.auto 0 && mkdir -p src/sub && echo 1 > src/sub/file && echo 1 > top && "
      "git add . && git commit -qm one && git checkout -qb other && git mv src lib && "
      "echo 2 > top && git commit -qam two");
  run_program("git checkout -q - && git checkout -q other && git stash list");
}

}  // namespace
}  // namespace spate::testing
