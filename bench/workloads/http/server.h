// The requests to the servers of http, and their responses.
#ifndef BENCH_WORKLOADS_HTTP_SERVER_H
#define BENCH_WORKLOADS_HTTP_SERVER_H

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
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

#endif
