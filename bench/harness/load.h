/* Shared by the clients that load server contestants: they start the server on its processors,
   read its tally and connect to it. Every contestant of a workload is loaded by the same
   program, on bare system calls. */
#ifndef BENCH_HARNESS_LOAD_H
#define BENCH_HARNESS_LOAD_H

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/contestant.h"

// Where server and client run.
enum class Placement {
  apart,     // Each on its half of the processors, as many of them as it has threads.
  together,  // Both on one.
};

class ServerProcess {
 public:
  struct Tally {
    std::uint64_t bytes = 0, accepted = 0, closed = 0, expired = 0;
    std::uint64_t heap = 0, user_bytes = 0;
  };

  // Starts --program (under --under, if that is given) with all our arguments, and pins it and us.
  // Under a tool that counts, nothing is pinned: it would only take longer. With --external PORT
  // and --pid it is a server that runs there already, which has no tally and is not ended.
  ServerProcess(int argc, char** argv, Placement placement)
      : threads_(std::size_t(bench_number(argc, argv, "threads", 1))) {
    bench_raise_fd_limit();
    if (const long port = bench_number(argc, argv, "external", 0); port != 0) {
      pid_ = pid_t(bench_number(argc, argv, "pid", 0));
      ports_.push_back(std::uint16_t(port));
      return;
    }
    const char* program = bench_text(argc, argv, "program", nullptr);
    if (program == nullptr) fail("--program is missing");
    const std::string under = bench_text(argc, argv, "under", "");
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) bench_die("pipe2");
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], STDOUT_FILENO);
      if (under.empty()) pin(placement, false);
      become(under + " \"$0\" \"$@\"", program, argc, argv);
    }
    close(ends[1]);
    if (under.empty()) pin(placement, true);
    output_ = fdopen(ends[0], "r");
    std::istringstream ready(next_line("ready"));
    ready >> pid_;
    for (int port; ready >> port;) ports_.push_back(std::uint16_t(port));
    if (ports_.empty()) fail("the server names no port");
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::size_t threads() const { return threads_; }

  // Returns the server's address for connection number `i`: they are distributed evenly.
  sockaddr_in address(std::size_t i) const {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(ports_[i % ports_.size()]);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  // While the server has nothing to do.
  Tally tally() {
    if (child_ == 0) return {};
    kill(pid_, SIGUSR1);
    return read_tally();
  }

  // Ends the server, after everything sent was answered.
  Tally end() {
    if (child_ == 0) return {};
    kill(pid_, SIGTERM);
    const Tally told = read_tally();
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) bench_die("waitpid");
    if (status != 0) fail("the server ends with a failure");
    return told;
  }

  // Returns the processor time of all its threads.
  std::uint64_t processor_ns() const {
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
    std::uint64_t sum = 0;
    DIR* directory = opendir(tasks.c_str());
    while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
      if (entry->d_name[0] == '.') continue;
      FILE* file = fopen((tasks + "/" + entry->d_name + "/schedstat").c_str(), "r");
      std::uint64_t spent = 0;
      if (file != nullptr && fscanf(file, "%" SCNu64, &spent) == 1) sum += spent;
      if (file != nullptr) fclose(file);
    }
    if (directory != nullptr) closedir(directory);
    return sum;
  }

  std::uint64_t resident_bytes() const {
    FILE* file = fopen(("/proc/" + std::to_string(pid_) + "/statm").c_str(), "r");
    std::uint64_t size = 0, resident = 0;
    if (file == nullptr || fscanf(file, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
      bench_die("statm");
    fclose(file);
    return resident * std::uint64_t(sysconf(_SC_PAGESIZE));
  }

  // Returns how many descriptors the server has open. Since Linux 6.2 the size of the directory
  // says that.
  std::size_t open_descriptors() const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/fd";
    struct stat about = {};
    if (stat(path.c_str(), &about) != 0) bench_die(path.c_str());
    if (about.st_size > 0) return std::size_t(about.st_size);
    DIR* directory = opendir(path.c_str());
    std::size_t count = 0;
    while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory))
      count += entry->d_name[0] == '.' ? 0 : 1;
    if (directory != nullptr) closedir(directory);
    return count;
  }

  [[noreturn]] static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
  }

 private:
  [[noreturn]] static void become(const std::string& command, const char* program, int argc,
                                  char** argv) {
    const std::string line = "exec " + command;
    std::vector<char*> words = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                const_cast<char*>(line.c_str()), const_cast<char*>(program)};
    words.insert(words.end(), argv + 1, argv + argc);
    words.push_back(nullptr);
    execv("/bin/sh", words.data());
    bench_die("/bin/sh");
    _exit(1);
  }

  // The server has the first processors of its half, we have those of the other.
  void pin(Placement placement, bool client) const {
    cpu_set_t allowed, chosen;
    CPU_ZERO(&allowed);
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    std::vector<std::size_t> cpus;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    const std::size_t half = cpus.size() / 2;
    if (placement == Placement::together || half == 0) {
      CPU_SET(cpus[0], &chosen);
    } else {
      for (std::size_t i = 0; i < half && i < threads_; ++i)
        CPU_SET(cpus[(client ? half : 0) + i], &chosen);
    }
    sched_setaffinity(0, sizeof chosen, &chosen);
  }

  // Returns the rest of the next line that begins with `word`. Passes lines for the harness on.
  std::string next_line(const std::string& word) {
    char line[1024];
    while (fgets(line, sizeof line, output_) != nullptr) {
      if (line[0] == '{') fputs(line, stdout);
      if (std::string(line).starts_with(word + " ")) return line + word.size();
    }
    fail("the server has ended");
  }

  Tally read_tally() {
    std::istringstream line(next_line("tally"));
    Tally told;
    line >> told.bytes >> told.accepted >> told.closed >> told.expired >> told.heap >>
        told.user_bytes;
    return told;
  }

  std::size_t threads_;
  pid_t child_ = 0;  // The process that we started, perhaps a tool; 0 if none.
  pid_t pid_ = 0;    // The server itself.
  std::vector<std::uint16_t> ports_;
  FILE* output_ = nullptr;
};

// Measures how much the server's memory grew after this object was made: by its allocator's count,
// if it reports one, and by its resident pages.
class MemoryGrowth {
 public:
  explicit MemoryGrowth(ServerProcess& server)
      : server_(server), before_(server.tally()), pages_before_(server.resident_bytes()) {}

  void report(std::size_t connections) {
    const auto count = double(connections);
    const ServerProcess::Tally now = server_.tally();
    if (now.heap > 0)
      bench_metric("bytes_per_connection", "B", (double(now.heap) - double(before_.heap)) / count);
    bench_metric("resident_per_connection", "B",
                 (double(server_.resident_bytes()) - double(pages_before_)) / count);
    if (now.user_bytes > 0) bench_metric("user_bytes", "B", double(now.user_bytes));
  }

 private:
  ServerProcess& server_;
  const ServerProcess::Tally before_;
  const std::uint64_t pages_before_;
};

// By then a server that gives memory back after a while has done so. --rest_ms shortens it where
// the figure does not matter.
inline constexpr long kUntilRestMs = 2500;

// A connected socket, non-blocking. Blocking connects are answered at once on the loopback device:
// the backlog has room for all. `from` is a source address; each has its own ports.
inline int bench_connect(const sockaddr_in& to, const sockaddr_in* from = nullptr) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE))
    ServerProcess::fail("too few file descriptors for so many connections (ulimit -Hn)");
  const int on = 1;
  if (fd >= 0 && from != nullptr) {
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, reinterpret_cast<const sockaddr*>(from), sizeof *from) != 0) bench_die("bind");
  }
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    if (errno == EADDRNOTAVAIL)
      ServerProcess::fail("no local port is left (net.ipv4.ip_local_port_range)");
    bench_die("connect");
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) bench_die("fcntl");
  return fd;
}

// Ends a connection so that none of it is left in TIME_WAIT, where thousands would slow down the
// runs that follow.
inline void bench_reset(int fd) {
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
}

// Drives the connections of a client, by number, for as long as the run lasts. `Load` has
// send_rest(number), called when there is room; hear(number), called when data arrived; is_done(),
// true if each connection has done its share; and done(), the number done until now.
template <class Load>
class LoadRun {
 public:
  LoadRun(Load& load, const ServerProcess& server) : load_(load), server_(server) {}
  LoadRun(const LoadRun&) = delete;
  LoadRun& operator=(const LoadRun&) = delete;

  void add(int fd, std::size_t number) { control(EPOLL_CTL_ADD, fd, number, EPOLLIN); }
  void want_to_send(int fd, std::size_t number, bool on) {
    control(EPOLL_CTL_MOD, fd, number, on ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  void until_done() {
    turn_until([this] { return load_.is_done(); });
  }
  void measure_until_done() {
    measure([this] { until_done(); });
  }
  // Measures after a quarter of the time, in which all warm up. The time is longer if it passes
  // without a result.
  void measure_for(long milliseconds) {
    pass(milliseconds / 4);
    measure([&] { pass(milliseconds); });
  }

  std::uint64_t measured() const { return measured_; }
  double per_second() const { return double(measured_) / seconds_; }
  // Returns the server's processor time for one unit of work.
  double processor_us() const { return double(spent_ns_) / 1e3 / double(measured_); }

 private:
  void control(int what, int fd, std::size_t number, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    if (epoll_ctl(epoll_, what, fd, &event) != 0) bench_die("epoll_ctl");
  }

  template <class Over>
  void turn_until(Over over) {
    std::vector<epoll_event> events(1024);
    while (!over()) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) {
        const auto number = std::size_t(events[std::size_t(i)].data.u64);
        const std::uint32_t ready = events[std::size_t(i)].events;
        if ((ready & EPOLLOUT) != 0) load_.send_rest(number);
        if ((ready & ~std::uint32_t{EPOLLOUT}) != 0) load_.hear(number);
      }
    }
  }

  void pass(long milliseconds) {
    const std::uint64_t end = bench_now_ns() + std::uint64_t(milliseconds) * 1'000'000;
    const std::uint64_t before = load_.done();
    turn_until([&] { return bench_now_ns() >= end && load_.done() > before; });
  }

  template <class Function>
  void measure(Function function) {
    const std::uint64_t before = load_.done(), begin_processor = server_.processor_ns();
    const std::uint64_t begin = bench_now_ns();
    function();
    seconds_ = double(bench_now_ns() - begin) * 1e-9;
    spent_ns_ = server_.processor_ns() - begin_processor;
    measured_ = load_.done() - before;
  }

  Load& load_;
  const ServerProcess& server_;
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::uint64_t measured_ = 0, spent_ns_ = 0;
  double seconds_ = 0;
};

// Returns bytes to check an echo: the byte at `offset` of a connection is that of bench_pattern(id,
// offset), and so on for kPatternRun.
inline constexpr std::size_t kPatternRun = 1 << 20;

inline const char* bench_pattern(std::size_t id, std::uint64_t offset) {
  static constexpr std::size_t kPeriod = 251;
  static const std::string bytes = [] {
    std::string made(kPeriod + kPatternRun, 0);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = char(i % kPeriod);
    return made;
  }();
  return bytes.data() + (id * 17 + offset) % kPeriod;
}

#endif
