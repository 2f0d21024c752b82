// The requests to the servers of http, and their responses.
#ifndef BENCH_WORKLOADS_HTTP_SERVER_H
#define BENCH_WORKLOADS_HTTP_SERVER_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "harness/server.h"

inline constexpr std::string_view kHello = "Hello, World!";
inline constexpr std::size_t kPageSize = 20 * 1024;
inline constexpr std::size_t kFileSize = 1024 * 1024;
inline constexpr std::size_t kUploadSize = 1024 * 1024;

// GET /page.
inline const std::string& bench_page() {
  static const std::string page(kPageSize, 'p');
  return page;
}

// GET /file: an open file, of which each answer is sent from its beginning. It lies where those of
// the ready-made servers do: one in memory alone is sent at another price.
inline int bench_file() {
  static const int file = [] {
    std::string name = bench_temporary_directory() + std::string("/spate-bench-XXXXXX");
    const int fd = mkostemp(name.data(), O_CLOEXEC);
    const std::string bytes(kFileSize, 'f');
    if (fd < 0 || write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      bench_die(name.c_str());
    unlink(name.c_str());
    return fd;
  }();
  return file;
}

// GET /file by its name: a directory with an equal file, which remove() deletes. The file seems to
// be an hour old.
class BenchFileTree {
 public:
  static const std::string& directory() {
    static const std::string made = make();
    return made;
  }
  // May be called by a signal handler.
  static void remove() {
    if (file_.empty()) return;
    unlink(file_.c_str());
    rmdir(directory_.c_str());
  }

 private:
  static std::string make() {
    directory_ = bench_temporary_directory() + std::string("/spate-bench-XXXXXX");
    if (mkdtemp(directory_.data()) == nullptr) bench_die(directory_.c_str());
    file_ = directory_ + "/file";
    const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const std::string bytes(kFileSize, 'f');
    const timespec times[2] = {{time(nullptr) - 3600, 0}, {time(nullptr) - 3600, 0}};
    if (fd < 0 || write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size()) ||
        futimens(fd, times) != 0)
      bench_die(file_.c_str());
    close(fd);
    return directory_;
  }

  static inline std::string directory_;
  static inline std::string file_;
};

#endif
