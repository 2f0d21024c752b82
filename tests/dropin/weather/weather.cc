// Injects faults into a program that knows nothing of them: a library for LD_PRELOAD in which calls
// on nonblocking sockets and pipes sometimes fail with EAGAIN or EINTR, or transfer only some of
// the bytes. The kernel may do all of that at any time.
//
//   WEATHER_SHARE    the share of calls that fail, 0 to 1; default: 0.05
//   WEATHER_KINDS    of again,interrupt,short; default: all
//   WEATHER_CALLS    of in,out,accept: which calls; default: all
//   WEATHER_LEAST    calls that send fewer bytes never fail; default: 0
//   WEATHER_LEAST_READ  a short read may still return as many bytes; default: 1
//   WEATHER_LOCAL    0 excludes pipes and Unix sockets; default: 1
//   WEATHER_SEED     a call's result depends only on the seed and on the call's number
//   WEATHER_REPORT   a file of four 64-bit counters: eligible calls, failed with EAGAIN,
//                    failed with EINTR, shortened
//
// The counters are in shared memory, so that they include killed programs and child processes.
// Descriptors of other types (eventfd, epoll, timerfd, files) and blocking ones are excluded;
// datagrams are never shortened.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

enum Kind : unsigned { again, interrupt, cut, kinds };
enum class Way : unsigned { in, out, accept, count };

struct Counters {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> done[kinds];
};
static_assert(sizeof(Counters) == 4 * 8);

Counters own_counters;
Counters* counters = &own_counters;
std::atomic<std::uint64_t> call_number;
std::uint64_t seed = 1;
std::uint64_t threshold = 0;  // In units of 2^-64; 0 until the constructor ran.
bool is_wanted[kinds];
std::uint64_t least_sent = 0;
std::uint64_t least_read = 1;
bool is_local_exposed = true;
bool is_exposed[static_cast<unsigned>(Way::count)];

// splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

const char* from_environment(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

void map_report(const char* path) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  if (::ftruncate(file, sizeof(Counters)) == 0) {
    void* mapped = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) counters = static_cast<Counters*>(mapped);
  }
  ::close(file);
}

[[gnu::constructor]] void begin() {
  const char* wanted = from_environment("WEATHER_KINDS", "again,interrupt,short");
  is_wanted[again] = std::strstr(wanted, "again") != nullptr;
  is_wanted[interrupt] = std::strstr(wanted, "interrupt") != nullptr;
  is_wanted[cut] = std::strstr(wanted, "short") != nullptr;
  const char* calls = from_environment("WEATHER_CALLS", "in,out,accept");
  is_exposed[0] = std::strstr(calls, "in") != nullptr;
  is_exposed[1] = std::strstr(calls, "out") != nullptr;
  is_exposed[2] = std::strstr(calls, "accept") != nullptr;
  seed = std::strtoull(from_environment("WEATHER_SEED", "1"), nullptr, 10);
  least_sent = std::strtoull(from_environment("WEATHER_LEAST", "0"), nullptr, 10);
  least_read = std::strtoull(from_environment("WEATHER_LEAST_READ", "1"), nullptr, 10);
  is_local_exposed = std::strcmp(from_environment("WEATHER_LOCAL", "1"), "0") != 0;
  if (const char* path = std::getenv("WEATHER_REPORT")) map_report(path);
  const double share = std::strtod(from_environment("WEATHER_SHARE", "0.05"), nullptr);
  threshold = static_cast<std::uint64_t>(std::clamp(share, 0.0, 1.0) * 18446744073709549568.0);
}

bool is_non_blocking(int fd, int flags) {
  return (flags & MSG_DONTWAIT) != 0 || (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

int option_of(int fd, int option) {
  int value = 0;
  socklen_t length = sizeof(value);
  ::getsockopt(fd, SOL_SOCKET, option, &value, &length);
  return value;
}

enum class Medium { other, stream, datagram };

Medium medium_of(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return Medium::other;
  if (S_ISFIFO(status.st_mode)) return is_local_exposed ? Medium::stream : Medium::other;
  if (!S_ISSOCK(status.st_mode)) return Medium::other;
  if (!is_local_exposed && option_of(fd, SO_DOMAIN) == AF_UNIX) return Medium::other;
  return option_of(fd, SO_TYPE) == SOCK_STREAM ? Medium::stream : Medium::datagram;
}

// The fate of one call: an errno, or how many bytes it may move.
struct Fate {
  int error;
  std::size_t size;
};

Fate count(Kind kind, Fate fate) {
  counters->done[kind].fetch_add(1, std::memory_order_relaxed);
  return fate;
}

Fate decide(Way way, int fd, int flags, std::size_t size, bool may_be_cut) {
  if (threshold == 0 || !is_exposed[static_cast<unsigned>(way)]) return {0, size};
  if (way == Way::out && size < least_sent) return {0, size};
  const int error_before = errno;
  const Medium medium = is_non_blocking(fd, flags) ? medium_of(fd) : Medium::other;
  errno = error_before;
  if (medium == Medium::other) return {0, size};
  counters->calls.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t chance = mix(seed ^ mix(++call_number));
  if (chance >= threshold) return {0, size};
  const std::uint64_t choice = mix(chance);
  const Kind kind = static_cast<Kind>(choice % kinds);
  if (!is_wanted[kind]) return {0, size};
  if (kind != cut) return count(kind, {kind == again ? EAGAIN : EINTR, 0});
  const std::size_t least = way == Way::in ? std::max<std::size_t>(least_read, 1) : 1;
  if (!may_be_cut || medium != Medium::stream || size <= least) return {0, size};
  return count(cut, {0, least + static_cast<std::size_t>((choice >> 8) % (size - least))});
}

// Returns the next function of that name.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  // Makes the call, or returns -1 with an injected error.
  template <class... Arguments>
  auto call(const Fate& fate, Arguments... arguments) {
    Function* function = found_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      found_.store(function, std::memory_order_relaxed);
    }
    if (fate.error == 0) return function(arguments...);
    errno = fate.error;
    return static_cast<decltype(function(arguments...))>(-1);
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

constinit Next<ssize_t(int, void*, std::size_t)> next_read("read");
constinit Next<ssize_t(int, const void*, std::size_t)> next_write("write");
constinit Next<ssize_t(int, const iovec*, int)> next_readv("readv");
constinit Next<ssize_t(int, const iovec*, int)> next_writev("writev");
constinit Next<ssize_t(int, void*, std::size_t, int)> next_recv("recv");
constinit Next<ssize_t(int, const void*, std::size_t, int)> next_send("send");
constinit Next<ssize_t(int, void*, std::size_t, int, sockaddr*, socklen_t*)> next_recvfrom(
    "recvfrom");
constinit Next<ssize_t(int, const void*, std::size_t, int, const sockaddr*, socklen_t)> next_sendto(
    "sendto");
constinit Next<ssize_t(int, msghdr*, int)> next_recvmsg("recvmsg");
constinit Next<ssize_t(int, const msghdr*, int)> next_sendmsg("sendmsg");
constinit Next<int(int, sockaddr*, socklen_t*)> next_accept("accept");
constinit Next<int(int, sockaddr*, socklen_t*, int)> next_accept4("accept4");

// Shortens scattered data within its first piece.
std::size_t first_size(const iovec* pieces, std::size_t size) {
  return size == 0 ? 0 : pieces[0].iov_len;
}

bool is_cut(const Fate& fate, std::size_t size) { return fate.error == 0 && fate.size < size; }

template <class NextCall>
ssize_t vector_call(NextCall& next, Way way, int fd, const iovec* pieces, int size) {
  const std::size_t first = size <= 0 ? 0 : pieces[0].iov_len;
  const Fate fate = decide(way, fd, 0, first, true);
  if (!is_cut(fate, first)) return next.call(fate, fd, pieces, size);
  const iovec piece{pieces[0].iov_base, fate.size};
  return next.call(fate, fd, &piece, 1);
}

// Returns whether a part of a message may be left out: not if it carries descriptors or other
// control data.
bool is_plain(const msghdr* message) { return message->msg_controllen == 0; }

}  // namespace

extern "C" {

ssize_t read(int fd, void* data, std::size_t size) {
  const Fate fate = decide(Way::in, fd, 0, size, true);
  return next_read.call(fate, fd, data, fate.size);
}

ssize_t write(int fd, const void* data, std::size_t size) {
  const Fate fate = decide(Way::out, fd, 0, size, true);
  return next_write.call(fate, fd, data, fate.size);
}

ssize_t readv(int fd, const iovec* pieces, int size) {
  return vector_call(next_readv, Way::in, fd, pieces, size);
}

ssize_t writev(int fd, const iovec* pieces, int size) {
  return vector_call(next_writev, Way::out, fd, pieces, size);
}

ssize_t recv(int fd, void* data, std::size_t size, int flags) {
  const Fate fate = decide(Way::in, fd, flags, size, (flags & MSG_OOB) == 0);
  return next_recv.call(fate, fd, data, fate.size, flags);
}

ssize_t send(int fd, const void* data, std::size_t size, int flags) {
  const Fate fate = decide(Way::out, fd, flags, size, (flags & MSG_OOB) == 0);
  return next_send.call(fate, fd, data, fate.size, flags);
}

ssize_t recvfrom(int fd, void* data, std::size_t size, int flags, sockaddr* from,
                 socklen_t* from_size) {
  const Fate fate = decide(Way::in, fd, flags, size, (flags & MSG_OOB) == 0);
  return next_recvfrom.call(fate, fd, data, fate.size, flags, from, from_size);
}

ssize_t sendto(int fd, const void* data, std::size_t size, int flags, const sockaddr* to,
               socklen_t to_size) {
  const Fate fate = decide(Way::out, fd, flags, size, (flags & MSG_OOB) == 0);
  return next_sendto.call(fate, fd, data, fate.size, flags, to, to_size);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const std::size_t first = first_size(message->msg_iov, message->msg_iovlen);
  const Fate fate = decide(Way::in, fd, flags, first, is_plain(message));
  if (!is_cut(fate, first)) return next_recvmsg.call(fate, fd, message, flags);
  iovec piece{message->msg_iov[0].iov_base, fate.size};
  iovec* const pieces = std::exchange(message->msg_iov, &piece);
  const auto size = std::exchange(message->msg_iovlen, 1u);
  const ssize_t result = next_recvmsg.call(fate, fd, message, flags);
  message->msg_iov = pieces;
  message->msg_iovlen = size;
  return result;
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const std::size_t first = first_size(message->msg_iov, message->msg_iovlen);
  const Fate fate = decide(Way::out, fd, flags, first, is_plain(message));
  if (!is_cut(fate, first)) return next_sendmsg.call(fate, fd, message, flags);
  iovec piece{message->msg_iov[0].iov_base, fate.size};
  msghdr shorter = *message;
  shorter.msg_iov = &piece;
  shorter.msg_iovlen = 1;
  return next_sendmsg.call(fate, fd, &shorter, flags);
}

int accept(int fd, sockaddr* from, socklen_t* from_size) {
  return next_accept.call(decide(Way::accept, fd, 0, 0, false), fd, from, from_size);
}

int accept4(int fd, sockaddr* from, socklen_t* from_size, int flags) {
  return next_accept4.call(decide(Way::accept, fd, 0, 0, false), fd, from, from_size, flags);
}

// Functions that programs compiled with _FORTIFY_SOURCE call instead.
ssize_t __read_chk(int fd, void* data, std::size_t size, std::size_t) {
  return read(fd, data, size);
}

ssize_t __recv_chk(int fd, void* data, std::size_t size, std::size_t, int flags) {
  return recv(fd, data, size, flags);
}

ssize_t __recvfrom_chk(int fd, void* data, std::size_t size, std::size_t, int flags, sockaddr* from,
                       socklen_t* from_size) {
  return recvfrom(fd, data, size, flags, from, from_size);
}

}  // extern "C"
