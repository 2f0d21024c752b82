#include "sim/kernel/passed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sim/kernel/kernel.h"

namespace spate::sim {

namespace {

constexpr std::size_t kMostPassed = 253;

// A descriptor of the system, such as a file.
class SystemFile final : public File {
 public:
  explicit SystemFile(int fd) : fd_(fd) {}
  ~SystemFile() override { ::close(fd_); }
  std::uint32_t ready() const override { return 0; }
  int open_again() const override { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 0); }

 private:
  const int fd_;
};

std::shared_ptr<File> file_of(int fd) {
  if (fd >= Kernel::kFirstDescriptor) return Kernel::current()->find(fd);
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return own < 0 ? nullptr : std::make_shared<SystemFile>(own);
}

int open(const std::shared_ptr<File>& file) {
  const int system = file->open_again();
  return system >= 0 ? system : Kernel::current()->open(file);
}

long take(const cmsghdr& header, Passed& passed) {
  if (header.cmsg_level != SOL_SOCKET || header.cmsg_type != SCM_RIGHTS) return -EINVAL;
  const std::size_t count = (header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (passed.size() + count > kMostPassed) return -EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(&header) + i * sizeof(fd), sizeof(fd));
    passed.push_back(file_of(fd));
    if (passed.back() == nullptr) return -EBADF;
  }
  return 0;
}

}  // namespace

long take_passed(const msghdr& message, Passed& passed) {
  auto& all = const_cast<msghdr&>(message);
  for (cmsghdr* header = CMSG_FIRSTHDR(&all); header != nullptr; header = CMSG_NXTHDR(&all, header))
    if (const long result = take(*header, passed); result < 0) return result;
  return 0;
}

void open_passed(const Passed& passed, Control& control) {
  if (passed.empty()) return;
  std::vector<int> opened;
  const std::size_t room = std::min(passed.size(), control.room_for(sizeof(int)));
  while (opened.size() < room) {
    const int fd = open(passed[opened.size()]);
    if (fd < 0) break;
    opened.push_back(fd);
  }
  if (!opened.empty()) control.add_bytes(SOL_SOCKET, SCM_RIGHTS, std::as_bytes(std::span(opened)));
  if (opened.size() < passed.size()) control.cut();
}

}  // namespace spate::sim
