/* Shared by server contestants: the program around a Server, which a contestant defines:

     struct Server {
       Server(int socket, const ServerOptions& options, Tally& tally);
       void run();                // serves; never returns
       static void version();     // calls bench_version()
     };

   It may define kUserBytes, the memory that the contestant itself adds to a connection, and
   remove_files(), which a signal handler calls at the end. `socket`
   is bound to a port of 127.0.0.1, non-blocking, and listens already if it is TCP's. Each thread
   has its own Server with its own port. The client distributes its connections evenly, so
   neither hand-over between threads nor hashing affects the result. If there is only one thread,
   it is the main thread.

   Signals control the program, so no contestant watches for its end: on SIGUSR1 it prints its
   tally, on SIGTERM it prints its tally and exits. SIGUSR1 arrives while the server is idle,
   inside the library's wait. harness/README.md has the protocol. */
#ifndef BENCH_HARNESS_SERVER_H
#define BENCH_HARNESS_SERVER_H

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/contestant.h"

// The counters of one Server.
struct alignas(64) Tally {
  std::uint64_t bytes = 0;  // Received.
  std::uint64_t accepted = 0;
  std::uint64_t closed = 0;
  std::uint64_t expired = 0;  // Connections closed because they were idle for too long.
};

struct ServerOptions {
  int argc;
  char** argv;

  long number(const char* name, long otherwise = 0) const {
    return bench_number(argc, argv, name, otherwise);
  }
};

// As much as a contestant reads at once, where its library leaves it the choice.
inline constexpr std::size_t kReadSize = 65536;

inline void bench_no_delay(int fd) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) bench_die("TCP_NODELAY");
}

// For contestants that do their own output: sends as much as the kernel accepts, and returns the
// number of bytes. If the connection failed, returns `size`: the next read reports the error.
inline std::size_t bench_send(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
  if (sent >= 0) return std::size_t(sent);
  return errno == EAGAIN ? 0 : size;
}

inline std::uint16_t bench_port(int fd) {
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) bench_die("getsockname");
  return ntohs(at.sin_port);
}

// For libraries that make the listening socket themselves: closes the socket, and returns its port.
inline std::uint16_t bench_give_up(int socket) {
  const std::uint16_t port = bench_port(socket);
  close(socket);
  return port;
}

template <class Server>
class ServerProgram {
 public:
  // `type`: SOCK_STREAM or SOCK_DGRAM.
  static int main(int argc, char** argv, int type) {
    bench_raise_fd_limit();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const ServerOptions options = {argc, argv};
    const auto count = std::size_t(options.number("threads", 1));
    std::vector<int> sockets;
    for (std::size_t i = 0; i < count; ++i) sockets.push_back(bind_socket(type));
    const std::string ready = ready_line(sockets);
    tallies_ = std::vector<Tally>(count);
    Server::version();
    fflush(stdout);
    std::vector<std::promise<void>> made(count);
    for (std::size_t i = 1; i < count; ++i)
      std::thread([&, i] {
        Server server(sockets[i], options, tallies_[i]);
        made[i].set_value();
        server.run();
      }).detach();
    Server server(sockets[0], options, tallies_[0]);
    for (std::size_t i = 1; i < count; ++i) made[i].get_future().wait();
    listen_to_signals();
    tell(ready);
    server.run();
    fprintf(stderr, "the server's loop has ended by itself\n");
    _exit(1);
  }

 private:
  static int bind_socket(int type) {
    const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) bench_die("bind");
    if (type == SOCK_STREAM && listen(fd, 4096) != 0) bench_die("listen");
    return fd;
  }

  // Made before the Servers are: some need the port, and close the socket.
  static std::string ready_line(const std::vector<int>& sockets) {
    std::string line = "ready " + std::to_string(getpid());
    for (const int fd : sockets) line += " " + std::to_string(bench_port(fd));
    return line + "\n";
  }

  static void tell(std::string_view line) {
    if (write(STDOUT_FILENO, line.data(), line.size()) != ssize_t(line.size())) _exit(1);
  }

  static void listen_to_signals() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);  // libuv and libevent leave that to the program.
  }

  static void on_signal(int signal) {
    const int error = errno;
    Tally sum;
    for (const Tally& one : tallies_) {
      sum.bytes += one.bytes;
      sum.accepted += one.accepted;
      sum.closed += one.closed;
      sum.expired += one.expired;
    }
    std::size_t heap = 0;
    if (signal == SIGUSR1) {
      const struct mallinfo2 info = mallinfo2();
      heap = info.uordblks + info.hblkhd;
    }
    std::size_t user_bytes = 0;
    if constexpr (requires { Server::kUserBytes; }) user_bytes = Server::kUserBytes;
    char line[160];  // No stream: it would allocate, perhaps in the midst of the library doing so.
    const int size = snprintf(line, sizeof line,
                              "tally %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %zu %zu\n",
                              sum.bytes, sum.accepted, sum.closed, sum.expired, heap, user_bytes);
    tell({line, std::size_t(size)});
    if (signal == SIGTERM) {
      if constexpr (requires { Server::remove_files(); }) Server::remove_files();
      _exit(0);
    }
    errno = error;
  }

  static inline std::vector<Tally> tallies_;
};

#endif
