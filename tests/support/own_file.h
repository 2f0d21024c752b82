// A file that exists while the test runs, under a name that no other test uses.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace spate::testing {

class OwnFile {
 public:
  OwnFile(const std::string& name, const std::string& text)
      : path_("spate_" + name + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    write(text);
  }
  ~OwnFile() { std::remove(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace spate::testing
