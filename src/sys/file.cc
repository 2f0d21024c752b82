#include "sys/file.h"

namespace spate::sys {

namespace {

long open_file(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return result_of(::open(path, O_RDONLY | O_CLOEXEC));
}

}  // namespace

long read_file(const char* path, std::string& text) {
  const Descriptor file(open_file(path));
  if (!file.is_open()) return file.get();
  char piece[4096];
  long size = 0;
  while ((size = read(file.get(), piece, sizeof(piece))) > 0)
    text.append(piece, static_cast<std::size_t>(size));
  return size;
}

FileStamp stamp_of(const char* path) {
  struct stat status{};
  if (injected(SystemCall::lstat) != 0 || ::stat(path, &status) < 0) return {};
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

}  // namespace spate::sys
