#include "sys/file.h"

namespace spate::sys {

namespace {

long open_file(const char* path) {
  if (const int error = injected(SystemCall::open)) return -error;
  return result_of(::open(path, O_RDONLY | O_CLOEXEC));
}

FileStatus::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileStatus::Kind::regular;
  return S_ISDIR(mode) ? FileStatus::Kind::directory : FileStatus::Kind::other;
}

FileStatus status_from(const struct stat& status) {
  return {.kind = kind_of(status.st_mode),
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
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

long status_of(int fd, FileStatus& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  struct stat found{};
  const long result = result_of(::fstat(fd, &found));
  status = status_from(found);
  return result;
}

long status_at(int directory, const char* name, FileStatus& status) {
  if (const int error = injected(SystemCall::lstat)) return -error;
  struct stat found{};
  const long result = result_of(::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW));
  status = status_from(found);
  return result;
}

Directory::Directory(Descriptor fd) : stream_(::fdopendir(fd.get())) {
  if (stream_ != nullptr) fd.release();
}

Directory::~Directory() {
  if (stream_ != nullptr) ::closedir(stream_);
}

const char* Directory::next() {
  const dirent* entry = ::readdir(stream_);
  return entry == nullptr ? nullptr : entry->d_name;
}

}  // namespace spate::sys
