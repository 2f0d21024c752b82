// Watches a file that comes into being, grows, and goes away.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "spate/stat.h"

namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "spate-example-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void append(const std::string& path, const char* text) {
  std::ofstream(path, std::ios::app) << text;
}

void on_change(spate::Stat& file) {
  const spate::FileStatus& before = file.previous();
  const spate::FileStatus& now = file.current();
  if (!before.exists()) {
    std::printf("it is there, with %lld bytes\n", static_cast<long long>(now.size));
    append(file.path(), "more\n");
  } else if (now.exists()) {
    std::printf("it has %lld bytes\n", static_cast<long long>(now.size));
    std::filesystem::remove(file.path());
  } else {
    std::printf("it is gone\n");
    file.stop();
  }
}

}  // namespace

int main() {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";

  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  spate::Stat file{*loop, on_change};
  if (file.start(path)) return 1;
  append(path, "");
  loop->run();
  return file.current().exists() ? 1 : 0;
}
