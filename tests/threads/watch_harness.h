// Shared by the tests of Watch: a directory, a loop, a log of events, and the tree that a program
// builds from them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/function.h"
#include "spate/loop.h"
#include "spate/timer.h"
#include "spate/watch.h"
#include "tests/support/make_loop.h"
#include "tests/support/own_tree.h"

namespace spate::testing {

// One word for an event: "created dir/", "moved a>b".
inline std::string line_of(const WatchEvent& event) {
  std::string text(name_of(event.change));
  if (event.is_found) text += '*';
  text += ' ';
  if (event.change == Change::moved) (text += event.old_path) += '>';
  text += event.path;
  if (event.is_directory) text += '/';
  return text;
}

inline std::string contents_at(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // Does not throw if the path has become a directory.
  return std::move(text).str();
}

// The entries of a tree: a file's contents, or "/" for a directory, or "@" for another kind.
using Entries = std::map<std::string, std::string>;

inline std::string entry_at(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (std::filesystem::is_directory(status)) return "/";
  if (std::filesystem::is_regular_file(status)) return contents_at(path);
  return "@";
}

// Returns the entry of a path at which there was a file. A directory may have replaced it since.
inline std::string file_at(const std::filesystem::path& path) {
  std::string entry = entry_at(path);
  return entry == "/" ? "@" : entry;
}

// Directories may vanish while this runs.
inline void add_entries(const std::string& root, const std::string& path, Entries& entries) {
  std::error_code error;
  std::filesystem::directory_iterator each(std::filesystem::path(root) / path, error);
  for (; !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
    const std::string name = path + (path.empty() ? "" : "/") + each->path().filename().string();
    entries[name] = entry_at(each->path());
    if (entries[name] == "/") add_entries(root, name, entries);
  }
}

// The tree as a program sees it that reads each file when an event names it.
class TreeModel {
 public:
  explicit TreeModel(std::string root) : root_(std::move(root)) {}

  const Entries& entries() const { return entries_; }
  Entries on_disk() const {
    Entries entries;
    add_entries(root_, "", entries);
    return entries;
  }

  void apply(const WatchEvent& event) {
    const std::string path(event.path);
    switch (event.change) {
      case Change::created:
      case Change::written:
        add(path, event.is_directory);
        break;
      case Change::removed:
        remove(path);
        break;
      case Change::moved:
        move(std::string(event.old_path), path, event.is_directory);
        break;
      case Change::ready:
      case Change::overflow:
        remove(path);
        add_entries(root_, path, entries_);
        break;
      case Change::changed:
      case Change::attributes:
      case Change::unwatched:
        break;
    }
  }

 private:
  // Calls `use` with the iterators of the entries below a directory.
  template <class Use>
  void with_range(const std::string& directory, Use use) {
    if (directory.empty()) return use(entries_.begin(), entries_.end());
    use(entries_.lower_bound(directory + '/'), entries_.lower_bound(directory + char{'/' + 1}));
  }
  void add(const std::string& path, bool is_directory) {
    remove(path);
    entries_[path] = is_directory ? "/" : file_at(std::filesystem::path(root_) / path);
  }
  void remove(const std::string& path) {
    entries_.erase(path);
    with_range(path, [this](auto begin, auto end) { entries_.erase(begin, end); });
  }
  // Reads the files again: when they were written, they may have had the new name already.
  void move(const std::string& from, const std::string& to, bool is_directory) {
    if (!entries_.contains(from)) return add(to, is_directory);
    remove(to);
    Entries moved;
    with_range(from, [&](auto begin, auto end) {
      for (; begin != end; ++begin) moved[to + begin->first.substr(from.size())] = begin->second;
    });
    moved[to] = entries_.at(from);
    remove(from);
    for (const auto& [path, entry] : moved)
      entries_[path] = entry == "/" ? entry : file_at(std::filesystem::path(root_) / path);
  }

  std::string root_;
  Entries entries_;
};

class WatchTest : public ::testing::Test {
 protected:
  Result<Watch> start(const std::string& path, const WatchOptions& options) {
    return Watch::start(
        *loop_, path,
        [this](Result<std::span<const WatchEvent>> events) {
          ++calls_;
          if (!events) {
            end_ = events.error();
            return;
          }
          longest_ = std::max(longest_, events->size());
          for (const WatchEvent& event : *events) {
            log_.push_back(line_of(event));
            model_.apply(event);
          }
          if (during_call_) during_call_();
        },
        options);
  }
  // Starts, and waits until it is ready.
  void watch(const WatchOptions& options = {}) { watch(tree_.root(), options); }
  void watch(const std::string& path, const WatchOptions& options) {
    Result<Watch> started = start(path, options);
    ASSERT_TRUE(started) << started.error().message();
    watch_ = *std::move(started);
    ASSERT_TRUE(run_until([&] { return has("ready /"); }));
  }
  bool has(const std::string& event) const { return std::ranges::find(log_, event) != log_.end(); }
  // Returns the events since the last call.
  std::vector<std::string> take() { return std::exchange(log_, {}); }

  // Runs the loop until `done` returns true. The limit only ends a test that fails.
  template <class Done>
  bool run_until(Done done) {
    bool is_late = false;
    Timer limit(*loop_, [&is_late] { is_late = true; });
    EXPECT_TRUE(limit.start(std::chrono::minutes(2)));
    while (!done() && !is_late) EXPECT_FALSE(loop_->run(Run::once));
    return !is_late;
  }
  bool run_until_end() {
    return run_until([&] { return end_.has_value(); });
  }
  // Makes a file, and runs until its creation was reported: so was every change before it.
  void run_to_mark(const std::string& directory = "") {
    const std::string name = directory + "mark" + std::to_string(++marks_);
    tree_.write(name, "");
    EXPECT_TRUE(run_until([&] { return has("written " + name); })) << name;
    std::erase_if(log_, [](const std::string& event) { return event.find("mark") != event.npos; });
  }
  // Runs until the tree that was built from the events is the one on the disk.
  void expect_convergence() {
    EXPECT_TRUE(run_until([&] { return model_.entries() == model_.on_disk(); }));
    EXPECT_EQ(model_.entries(), model_.on_disk());
  }

  OwnTree tree_;
  std::unique_ptr<Loop> loop_ = make_loop();
  TreeModel model_{tree_.root()};
  Watch watch_;
  std::vector<std::string> log_;
  std::optional<std::error_code> end_;
  Function<void()> during_call_;
  std::size_t longest_ = 0;
  int calls_ = 0;
  int marks_ = 0;
};

}  // namespace spate::testing
