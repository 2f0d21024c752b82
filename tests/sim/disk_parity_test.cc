// A simulated disk against a directory of the system: random programs of calls on files, each run
// in both. Results, listings and the records of inotify are compared.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "spate/sim/disk.h"
#include "spate/sim/world.h"
#include "tests/support/own_tree.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"

extern "C" {
decltype(::close) spate_sim_close;
decltype(::openat) spate_sim_openat;
decltype(::preadv) spate_sim_preadv;
decltype(::pwritev) spate_sim_pwritev;
decltype(::ftruncate) spate_sim_ftruncate;
decltype(::fstat) spate_sim_fstat;
decltype(::fstatat) spate_sim_fstatat;
decltype(::unlinkat) spate_sim_unlinkat;
decltype(::rename) spate_sim_rename;
decltype(::fdopendir) spate_sim_fdopendir;
decltype(::readdir) spate_sim_readdir;
decltype(::closedir) spate_sim_closedir;
decltype(::read) spate_sim_read;
decltype(::inotify_init1) spate_sim_inotify_init1;
decltype(::inotify_add_watch) spate_sim_inotify_add_watch;
decltype(::inotify_rm_watch) spate_sim_inotify_rm_watch;
}

namespace spate::testing {
namespace {

struct FileCalls {
  decltype(&::close) close;
  decltype(&::openat) openat;
  decltype(&::preadv) preadv;
  decltype(&::pwritev) pwritev;
  decltype(&::ftruncate) ftruncate;
  decltype(&::fstat) fstat;
  decltype(&::fstatat) fstatat;
  decltype(&::unlinkat) unlinkat;
  decltype(&::rename) rename;
  decltype(&::fdopendir) fdopendir;
  decltype(&::readdir) readdir;
  decltype(&::closedir) closedir;
  decltype(&::read) read;
  decltype(&::inotify_init1) inotify_init1;
  decltype(&::inotify_add_watch) inotify_add_watch;
  decltype(&::inotify_rm_watch) inotify_rm_watch;
};

constexpr FileCalls kSystemFiles = {
    ::close,           ::openat,   ::preadv,   ::pwritev,       ::ftruncate,
    ::fstat,           ::fstatat,  ::unlinkat, ::rename,        ::fdopendir,
    ::readdir,         ::closedir, ::read,     ::inotify_init1, ::inotify_add_watch,
    ::inotify_rm_watch};
constexpr FileCalls kDiskFiles = {spate_sim_close,
                                  spate_sim_openat,
                                  spate_sim_preadv,
                                  spate_sim_pwritev,
                                  spate_sim_ftruncate,
                                  spate_sim_fstat,
                                  spate_sim_fstatat,
                                  spate_sim_unlinkat,
                                  spate_sim_rename,
                                  spate_sim_fdopendir,
                                  spate_sim_readdir,
                                  spate_sim_closedir,
                                  spate_sim_read,
                                  spate_sim_inotify_init1,
                                  spate_sim_inotify_add_watch,
                                  spate_sim_inotify_rm_watch};

// One program on one disk. Its text for each step is compared.
class FileMachine {
 public:
  FileMachine(const FileCalls& calls, std::string root, sim::Disk* disk)
      : calls_(calls),
        root_(std::move(root)),
        disk_(disk),
        inotify_(calls.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}
  ~FileMachine() {
    for (const int fd : fds_) calls_.close(fd);
    calls_.close(inotify_);
  }
  FileMachine(const FileMachine&) = delete;
  FileMachine& operator=(const FileMachine&) = delete;

  std::string step(Random random) {
    std::string text = act(random);
    for (const auto& [watch, records] : read_records()) text += " | " + records;
    return text;
  }

 private:
  static std::string result(long value) {
    return value < 0 ? "errno " + std::to_string(errno) : std::to_string(value);
  }
  static std::string some_path(Random& random) {
    std::string path;
    for (int depth = random.between(1, 3); depth > 0; --depth)
      path += '/' + std::string(1, static_cast<char>('a' + random.below(3)));
    return path;
  }
  int some_file(Random& random) { return fds_.empty() ? -1 : fds_[random.below(fds_.size())]; }

  std::string act(Random& random) {
    const std::string path = root_ + some_path(random);
    switch (random.below(12)) {
      case 0:
      case 1:
        return "open " + open(path, random);
      case 2:
        return "mkdir " + make_directory(path);
      case 3:
        return "unlink " +
               result(calls_.unlinkat(AT_FDCWD, path.c_str(), random.one_in(2) ? AT_REMOVEDIR : 0));
      case 4:
      case 5:
        return "rename " + result(calls_.rename(path.c_str(), (root_ + some_path(random)).c_str()));
      case 6:
        return "write " + write(some_file(random), random);
      case 7:
        return "read " + read(some_file(random), random);
      case 8:
        return "truncate " + truncate(some_file(random), static_cast<off_t>(random.below(9000)));
      case 9:
        return "close " + close(random);
      case 10:
        return "watch " + watch(random.one_in(3) ? root_ : path, random);
      default:
        return "list " + list(random.one_in(3) ? root_ : path) + status(path);
    }
  }

  std::string open(const std::string& path, Random& random) {
    static constexpr int kAccess[] = {O_RDONLY, O_WRONLY, O_RDWR};
    int flags = kAccess[random.below(3)] | O_CLOEXEC | O_NONBLOCK;
    if (random.one_in(2)) flags |= O_CREAT;
    if (random.one_in(4)) flags |= O_EXCL & ((flags & O_CREAT) != 0 ? ~0 : 0);
    if (random.one_in(4) && (flags & O_ACCMODE) != O_RDONLY) flags |= O_TRUNC;
    if (random.one_in(6)) flags |= O_APPEND;
    const int fd = calls_.openat(AT_FDCWD, path.c_str(), flags, 0600);
    if (fd < 0) return result(fd);
    fds_.push_back(fd);
    return "file";
  }
  std::string make_directory(const std::string& path) {
    if (disk_ == nullptr) return result(::mkdir(path.c_str(), 0700));
    errno = disk_->make_directory(path.substr(root_.size())).value();
    return result(errno == 0 ? 0 : -1);
  }
  std::string write(int fd, Random& random) {
    const std::string bytes(1 + random.below(5000), static_cast<char>('a' + random.below(26)));
    const iovec pieces[] = {{const_cast<char*>(bytes.data()), bytes.size()},
                            {const_cast<char*>("end"), 3}};
    return result(calls_.pwritev(fd, pieces, 2, static_cast<off_t>(random.below(6000))));
  }
  std::string read(int fd, Random& random) {
    std::string bytes(1 + random.below(5000), ' ');
    const iovec piece{bytes.data(), bytes.size()};
    const long count = calls_.preadv(fd, &piece, 1, static_cast<off_t>(random.below(6000)));
    return result(count) + (count > 0 ? bytes.substr(0, static_cast<std::size_t>(count)) : "");
  }
  // IN_EXCL_UNLINK does not keep Linux from reporting that a removed file was truncated.
  std::string truncate(int fd, off_t size) {
    struct stat status{};
    if (calls_.fstat(fd, &status) == 0 && status.st_nlink == 0) return "removed";
    return result(calls_.ftruncate(fd, size));
  }
  std::string close(Random& random) {
    if (fds_.empty()) return "nothing";
    const std::size_t which = random.below(fds_.size());
    struct stat status{};
    const int found = calls_.fstat(fds_[which], &status);
    const std::string size =
        S_ISREG(status.st_mode) ? " of " + std::to_string(status.st_size) : " of a directory";
    const std::string links = status.st_nlink == 0 ? " removed " : " ";
    const std::string closed = result(calls_.close(fds_[which]));
    fds_.erase(fds_.begin() + static_cast<std::ptrdiff_t>(which));
    return result(found) + size + links + closed;
  }
  // As Watch and Stat do, without the events of removed files that are open.
  std::string watch(const std::string& path, Random& random) {
    static constexpr std::uint32_t kMasks[] = {
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
            IN_CLOSE_WRITE | IN_EXCL_UNLINK | IN_MODIFY | IN_ONLYDIR,
        IN_ATTRIB | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
            IN_DELETE_SELF | IN_MOVE_SELF | IN_MASK_ADD | IN_EXCL_UNLINK};
    if (random.one_in(4)) {
      const int old = static_cast<int>(random.below(4));
      return "no more " + result(calls_.inotify_rm_watch(inotify_, old));
    }
    return result(calls_.inotify_add_watch(inotify_, path.c_str(), kMasks[random.below(2)]));
  }
  std::string status(const std::string& path) {
    struct stat status{};
    const int found = calls_.fstatat(AT_FDCWD, path.c_str(), &status, 0);
    if (found < 0) return result(found);
    return S_ISDIR(status.st_mode) ? " directory" : " size " + std::to_string(status.st_size);
  }
  std::string list(const std::string& path) {
    const int fd = calls_.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return result(fd);
    std::set<std::string> names;
    DIR* const stream = calls_.fdopendir(fd);
    while (const dirent* entry = calls_.readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.insert(name + (entry->d_type == DT_DIR ? "/" : ""));
    }
    calls_.closedir(stream);
    std::string text;
    for (const std::string& name : names) text += name + ' ';
    return text;
  }

  // Returns the records of each watch. Linux does not order those of several watches by what its
  // manual says, and puts IN_ISDIR into some records of a directory itself.
  std::map<int, std::string> read_records() {
    std::map<int, std::string> texts;
    alignas(inotify_event) char bytes[8192];
    long size = 0;
    while ((size = calls_.read(inotify_, bytes, sizeof(bytes))) > 0) {
      for (long at = 0; at < size;) {
        const auto& record = *reinterpret_cast<const inotify_event*>(bytes + at);
        at += static_cast<long>(sizeof(record) + record.len);
        const std::uint32_t mask =
            record.len == 0 ? record.mask & ~std::uint32_t{IN_ISDIR} : record.mask;
        char text[64];
        std::snprintf(text, sizeof(text), "%d:%x", record.wd, mask);
        std::string& all = texts[record.wd];
        all.append(text).append(record.len == 0 ? "" : record.name).append(" ");
      }
    }
    return texts;
  }

  const FileCalls& calls_;
  const std::string root_;
  sim::Disk* const disk_;
  const int inotify_;
  std::vector<int> fds_;
};

void compare_files(std::uint64_t seed) {
  OwnTree tree;
  sim::World world(seed);
  sim::Host& host = world.add_host("here");
  sim::Disk& disk = host.mount("/data");
  FileMachine system(kSystemFiles, tree.root(), nullptr);
  host.run([&](Loop&) {
    FileMachine simulated(kDiskFiles, "/data", &disk);
    Random random(seed);
    for (int i = 0; i < 150; ++i) {
      const Random step(random.next());
      const std::string expected = system.step(step);
      ASSERT_EQ(simulated.step(step), expected) << "seed " << seed << ", step " << i;
    }
  });
}

TEST(DiskParity, FilesAndRecordsOfInotifyAreThoseOfLinux) {
  for (const std::uint64_t seed : seeds(200)) {
    compare_files(seed);
    if (::testing::Test::HasFatalFailure()) break;
  }
}

}  // namespace
}  // namespace spate::testing
