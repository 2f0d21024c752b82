// Alternative names of calls: the checked versions of _FORTIFY_SOURCE, which also take the size of
// the buffer, and those for large files.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>

extern "C" {

// Defined in calls.cc and faulty_calls.cc.
ssize_t spate_faulty_read(int fd, void* data, std::size_t size);
ssize_t spate_faulty_recv(int fd, void* data, std::size_t size, int flags);
int spate_sim_poll(pollfd* fds, nfds_t count, int timeout_ms);
int spate_faulty_ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask);
int spate_faulty_open(const char* path, int flags, ...);
int spate_faulty_openat(int directory, const char* path, int flags, ...);
ssize_t spate_faulty_preadv(int fd, const iovec* pieces, int count, off_t offset);
ssize_t spate_faulty_pwritev(int fd, const iovec* pieces, int count, off_t offset);
int spate_sim_fcntl(int fd, int command, ...);
int spate_sim_fstatfs(int fd, struct statfs* found);
int spate_sim_lstat(const char* path, struct stat* status);
int spate_sim_fstat(int fd, struct stat* status);
int spate_sim_fstatat(int directory, const char* path, struct stat* status, int flags);
int spate_sim_ftruncate(int fd, off_t size);
int spate_sim_posix_fadvise(int fd, off_t offset, off_t size, int advice);
ssize_t spate_sim_pread(int fd, void* data, std::size_t size, off_t offset);
dirent* spate_sim_readdir(DIR* stream);
int spate_sim_stat(const char* path, struct stat* status);
int spate_sim_statfs(const char* path, struct statfs* found);
ssize_t spate_sim_preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags);
ssize_t spate_faulty_sendfile(int to, int file, off_t* offset, std::size_t size);

ssize_t spate_sim_read_chk(int fd, void* data, std::size_t size, std::size_t room) {
  return spate_faulty_read(fd, data, std::min(size, room));
}

ssize_t spate_sim_recv_chk(int fd, void* data, std::size_t size, std::size_t room, int flags) {
  return spate_faulty_recv(fd, data, std::min(size, room), flags);
}

int spate_sim_poll_chk(pollfd* fds, nfds_t count, int timeout_ms, std::size_t room) {
  return spate_sim_poll(fds, std::min(count, nfds_t{room / sizeof(*fds)}), timeout_ms);
}

int spate_sim_ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                        std::size_t room) {
  return spate_faulty_ppoll(fds, std::min(count, nfds_t{room / sizeof(*fds)}), timeout, mask);
}

int spate_sim_open_2(const char* path, int flags) { return spate_faulty_open(path, flags, 0); }

int spate_sim_open64_2(const char* path, int flags) { return spate_sim_open_2(path, flags); }

int spate_sim_open64(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return spate_faulty_open(path, flags, mode);
}

int spate_sim_openat64(int directory, const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  return spate_faulty_openat(directory, path, flags, mode);
}

int spate_sim_openat_2(int directory, const char* path, int flags) {
  return spate_faulty_openat(directory, path, flags, 0);
}

int spate_sim_openat64_2(int directory, const char* path, int flags) {
  return spate_faulty_openat(directory, path, flags, 0);
}

ssize_t spate_sim_preadv64(int fd, const iovec* pieces, int count, off_t offset) {
  return spate_faulty_preadv(fd, pieces, count, offset);
}

ssize_t spate_sim_preadv64v2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return spate_sim_preadv2(fd, pieces, count, offset, flags);
}

ssize_t spate_sim_pwritev64(int fd, const iovec* pieces, int count, off_t offset) {
  return spate_faulty_pwritev(fd, pieces, count, offset);
}

int spate_sim_fcntl64(int fd, int command, ...) {
  std::va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  return spate_sim_fcntl(fd, command, argument);
}

int spate_sim_lstat64(const char* path, struct stat* status) {
  return spate_sim_lstat(path, status);
}

int spate_sim_fstat64(int fd, struct stat* status) { return spate_sim_fstat(fd, status); }

int spate_sim_fstatat64(int directory, const char* path, struct stat* status, int flags) {
  return spate_sim_fstatat(directory, path, status, flags);
}

int spate_sim_fstatfs64(int fd, struct statfs* found) { return spate_sim_fstatfs(fd, found); }

int spate_sim_ftruncate64(int fd, off_t size) { return spate_sim_ftruncate(fd, size); }

int spate_sim_posix_fadvise64(int fd, off_t offset, off_t size, int advice) {
  return spate_sim_posix_fadvise(fd, offset, size, advice);
}

ssize_t spate_sim_pread64(int fd, void* data, std::size_t size, off_t offset) {
  return spate_sim_pread(fd, data, size, offset);
}

ssize_t spate_sim_pread_chk(int fd, void* data, std::size_t size, off_t offset, std::size_t room) {
  return spate_sim_pread(fd, data, std::min(size, room), offset);
}

ssize_t spate_sim_pread64_chk(int fd, void* data, std::size_t size, off_t offset,
                              std::size_t room) {
  return spate_sim_pread_chk(fd, data, size, offset, room);
}

dirent* spate_sim_readdir64(DIR* stream) { return spate_sim_readdir(stream); }

int spate_sim_stat64(const char* path, struct stat* status) { return spate_sim_stat(path, status); }

int spate_sim_statfs64(const char* path, struct statfs* found) {
  return spate_sim_statfs(path, found);
}

ssize_t spate_sim_sendfile64(int to, int file, off_t* offset, std::size_t size) {
  return spate_faulty_sendfile(to, file, offset, size);
}

}  // extern "C"
