// A directory that exists while the test runs, and files in it with fixed times.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace spate::testing {

class OwnTree {
 public:
  // The time of files: Mon, 13 Nov 2023 10:00:00 GMT.
  static constexpr std::int64_t kWritten = 1'699'869'600;

  OwnTree() {
    std::string name = std::filesystem::temp_directory_path() / "spate_tree_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    std::filesystem::create_directories(path_ / "root");
  }
  ~OwnTree() { std::filesystem::remove_all(path_); }
  OwnTree(const OwnTree&) = delete;
  OwnTree& operator=(const OwnTree&) = delete;

  std::string root() const { return at(""); }
  // Returns a path below the root; "../name" is beside it.
  std::string at(const std::string& name) const { return (path_ / "root" / name).string(); }

  void write(const std::string& name, std::string_view text, std::int64_t time = kWritten) {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << text;
    set_time(name, time);
  }
  void set_time(const std::string& name, std::int64_t time) {
    const timespec times[2] = {{.tv_sec = time, .tv_nsec = 0}, {.tv_sec = time, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, at(name).c_str(), times, 0), 0);
  }
  void link(const std::string& name, const std::string& target) {
    std::filesystem::create_symlink(target, at(name));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace spate::testing
