// The phases of a client of many connections, over one process or several. Each process of the
// client starts one server and has its share of the connections:
//
//   accept   opens all of them, at most 64 at a time, and has one request answered on each.
//            Meanwhile an older connection sends one request after the other.
//   idle     requests on the older connection alone
//   few      requests on every hundredth connection
//   all      requests on all connections
//   drain    resets all, and waits until the server has closed its ends
//
// At most 32 requests are on the way at a time, whatever the number of connections is. So
// the time of a request does not contain a queue that grows with them.
#ifndef BENCH_WORKLOADS_SCALE_CROWD_H
#define BENCH_WORKLOADS_SCALE_CROWD_H

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>

#include "harness/load.h"

// Durations, with a resolution of one part in 64.
class Durations {
 public:
  void add(std::uint64_t ns) { ++counts_[std::min(place_of(ns), counts_.size() - 1)]; }
  void add(const Durations& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  std::uint64_t count() const { return std::accumulate(counts_.begin(), counts_.end(), 0ull); }

  // Returns the duration that `share` of them do not exceed.
  double quantile_us(double share) const {
    const auto rank = std::uint64_t(share * double(count()));
    std::uint64_t before = 0;
    std::size_t i = 0;
    while (i + 1 < counts_.size() && before + counts_[i] <= rank) before += counts_[i++];
    return double(least_of(i) + least_of(i + 1)) / 2e3;
  }

 private:
  static constexpr std::uint64_t kSteps = 64;  // In each power of two.

  static std::size_t place_of(std::uint64_t ns) {
    if (ns < kSteps) return std::size_t(ns);
    const auto power = std::size_t(std::bit_width(ns / kSteps));
    return power * kSteps + std::size_t((ns >> (power - 1)) - kSteps);
  }
  static std::uint64_t least_of(std::size_t place) {
    if (place < kSteps) return place;
    return (kSteps + place % kSteps) << (place / kSteps - 1);
  }

  std::array<std::uint64_t, 36 * kSteps> counts_{};
};

enum Part { kAccept, kIdle, kFew, kAll, kDrain, kParts };

// The results of one process, in memory that all of them share.
struct Share {
  struct Phase {
    std::uint64_t begin_ns, end_ns, processor_ns, requests;
    Durations durations;
  };
  std::array<Phase, kParts> phases;
  std::uint64_t connections;
  double heap, resident;  // Growth of the server.
};

inline constexpr std::size_t kMostProcesses = 16;

struct Common {
  std::atomic<std::uint64_t> arrived{0};
  std::array<Share, kMostProcesses> shares{};

  static Common* make() {
    void* memory =
        mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) bench_die("mmap");
    return new (memory) Common;
  }
};

// The arguments of the harness.
struct CrowdOptions {
  CrowdOptions(int argc, char** argv)
      : connections(std::size_t(bench_number(argc, argv, "connections", 1))),
        processes(std::size_t(bench_number(argc, argv, "processes", 1))),
        milliseconds(bench_number(argc, argv, "milliseconds", 100)),
        limit(std::uint64_t(bench_number(argc, argv, "requests", 0))),
        rest_ms(bench_number(argc, argv, "rest_ms", kUntilRestMs)) {
    if (processes < 1 || processes > kMostProcesses || connections < processes)
      ServerProcess::fail("--connections and --processes do not fit together");
  }
  std::size_t share_of(std::size_t process) const {
    return connections / processes + (process < connections % processes ? 1 : 0);
  }

  std::size_t connections, processes;
  long milliseconds;
  std::uint64_t limit;  // Requests in all, instead of a time.
  long rest_ms;
};

// `Link` speaks a protocol: begin(talk, is_probe) starts a connection, ask(talk) sends a request,
// and go_on(talk) reads and returns true at the end of the greeting, and of each response.
template <class Link>
class Crowd {
 public:
  Crowd(Link& link, ServerProcess& server, const CrowdOptions& options, std::size_t process,
        Common& common)
      : link_(link),
        server_(server),
        options_(options),
        process_(process),
        common_(common),
        share_(common.shares[process]),
        count_(options.share_of(process)),
        talks_(count_ + 1) {}
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void run() {
    open(probe());
    for (bool is_open = false; !is_open;) turn([&](std::size_t) { is_open = true; });
    bench_sleep_ms(std::min(100L, options_.rest_ms));
    const ServerProcess::Tally before = server_.tally();
    const std::uint64_t resident = server_.resident_bytes();
    const std::size_t descriptors = server_.open_descriptors();
    await_others();
    accept();
    await_others();
    bench_sleep_ms(options_.rest_ms);
    share_.heap = double(server_.tally().heap) - double(before.heap);
    share_.resident = double(server_.resident_bytes()) - double(resident);
    share_.connections = server_.open_descriptors() - descriptors;
    work();
    await_others();
    drain(descriptors);
    await_others();
    link_.reset(talks_[probe()]);
  }

 private:
  using Talk = typename Link::Talk;

  static constexpr std::size_t kOpening = 64, kOpeningCounted = 8, kInFlight = 32;

  std::size_t probe() const { return count_; }

  // Waits until every process is here.
  void await_others() {
    const std::uint64_t all = ++stage_ * options_.processes;
    for (++common_.arrived; common_.arrived < all;) usleep(100);
  }

  void begin(Part part) {
    share_.phases[part].processor_ns = server_.processor_ns();
    share_.phases[part].begin_ns = bench_now_ns();
  }
  void end(Part part) {
    share_.phases[part].end_ns = bench_now_ns();
    share_.phases[part].processor_ns = server_.processor_ns() - share_.phases[part].processor_ns;
  }

  // Every process has other source addresses, one for ten thousand connections: an address has
  // 28,000 ports.
  void open(std::size_t i) {
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr =
        htonl(INADDR_LOOPBACK + std::uint32_t((process_ + 1) << 8) + std::uint32_t(i / 10000));
    talks_[i].fd = bench_connect(server_.address(0), &from);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, talks_[i].fd, &event) != 0) bench_die("epoll_ctl");
    talks_[i].asked_at = bench_now_ns();
    link_.begin(talks_[i], i == probe());
  }

  void ask(std::size_t i) {
    talks_[i].asked_at = bench_now_ns();
    link_.ask(talks_[i]);
  }

  // Waits once, and calls `on_whole` with each connection whose response is complete.
  template <class OnWhole>
  void turn(OnWhole on_whole) {
    std::array<epoll_event, kInFlight> events;
    const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
    for (int i = 0; i < count; ++i) {
      const auto number = std::size_t(events[std::size_t(i)].data.u64);
      if (!link_.go_on(talks_[number])) continue;
      talks_[number].is_asked = false;
      on_whole(number);
    }
  }

  void note(Part part, std::size_t i) {
    share_.phases[part].durations.add(bench_now_ns() - talks_[i].asked_at);
    ++share_.phases[part].requests;
  }

  void accept() {
    // Under callgrind more handshakes at a time would take longer than servers allow.
    const std::size_t opening = options_.limit > 0 ? kOpeningCounted : kOpening;
    std::size_t opened = 0, greeted = 0;
    bool is_probing = true;
    begin(kAccept);
    ask(probe());
    while (greeted < count_) {
      while (opened < count_ && opened - greeted < opening) open(opened++);
      turn([&](std::size_t i) {
        if (i != probe()) return void(++greeted);
        note(kAccept, i);
        if ((is_probing = greeted < count_)) ask(i);
      });
    }
    end(kAccept);
    while (is_probing)
      turn([&](std::size_t i) {
        note(kAccept, i);
        is_probing = false;
      });
  }

  void work() {
    if constexpr (Link::kBroadcasts) {
      await_others();
      return broadcast();
    }
    if (options_.limit == 0) {
      await_others();
      request(kIdle, probe(), 1, 1);
      await_others();
      const std::size_t few = std::max<std::size_t>(1, count_ / 100);
      request(kFew, 0, few, count_ / few);
    }
    await_others();
    request(kAll, 0, count_, 1);
  }

  bool is_over(Part part, std::uint64_t asked, std::size_t active) const {
    if (options_.limit > 0) return asked >= options_.limit / options_.processes;
    const std::uint64_t passed = bench_now_ns() - share_.phases[part].begin_ns;
    return asked >= active && passed >= std::uint64_t(options_.milliseconds) * 1'000'000;
  }

  // Sends requests on `active` connections: `first` and every `apart`th, in an order that visits
  // all of them and jumps.
  void request(Part part, std::size_t first, std::size_t active, std::size_t apart) {
    std::size_t step = active * 618 / 1000 + 1;
    while (std::gcd(step, active) != 1) ++step;
    std::size_t at = 0, in_flight = 0;
    std::uint64_t asked = 0;
    const auto ask_next = [&] {
      do at = (at + step) % active;
      while (talks_[first + at * apart].is_asked);
      ask(first + at * apart);
      ++asked;
      ++in_flight;
    };
    begin(part);
    while (in_flight < std::min(active, kInFlight) && !is_over(part, asked, in_flight)) ask_next();
    while (in_flight > 0)
      turn([&](std::size_t i) {
        note(part, i);
        --in_flight;
        if (!is_over(part, asked, active)) ask_next();
      });
    end(part);
  }

  // The first connection publishes to all, again and again. A duration is a message's, until all
  // have it.
  void broadcast() {
    begin(kAll);
    for (std::uint64_t told = 0; told == 0 || !is_over(kAll, told, 1); ++told) {
      for (std::size_t i = 0; i < count_; ++i) link_.expect(talks_[i]);
      ask(0);
      for (std::size_t left = count_; left > 0;) turn([&](std::size_t) { --left; });
      note(kAll, 0);
    }
    end(kAll);
  }

  void drain(std::size_t descriptors) {
    begin(kDrain);
    for (std::size_t i = 0; i < count_; ++i) link_.reset(talks_[i]);
    while (server_.open_descriptors() > descriptors) {
      if (bench_now_ns() - share_.phases[kDrain].begin_ns > kPatienceNs)
        ServerProcess::fail("the server keeps connections that were reset");
      usleep(100);
    }
    end(kDrain);
  }

  static constexpr std::uint64_t kPatienceNs = 100'000'000'000;

  Link& link_;
  ServerProcess& server_;
  const CrowdOptions& options_;
  const std::size_t process_;
  Common& common_;
  Share& share_;
  const std::size_t count_;
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::vector<Talk> talks_;  // The last one is the probe.
  std::uint64_t stage_ = 0;
};

// Adds up the processes, and prints the metrics.
class CrowdReport {
 public:
  CrowdReport(const CrowdOptions& options, const Common& common) : options_(options) {
    for (std::size_t i = 0; i < options.processes; ++i) {
      const Share& share = common.shares[i];
      connections_ += share.connections;
      heap_ += share.heap;
      resident_ += share.resident;
      for (std::size_t part = 0; part < kParts; ++part) add(phases_[part], share.phases[part]);
    }
  }

  // Memory grows by pages, so a few connections have no meaningful share of it.
  void print(bool broadcasts) const {
    const auto count = double(options_.connections);
    if (options_.connections >= 100) {
      if (heap_ > 0) bench_metric("bytes_per_connection", "B", heap_ / count);
      bench_metric("resident_per_connection", "B", resident_ / count);
    }
    print_phase("accept", kAccept, count);
    if (broadcasts) {
      print_phase("delivery", kAll, double(deliveries()));
    } else if (options_.limit == 0) {
      print_requests("idle", kIdle);
      print_requests("few", kFew);
    }
    if (!broadcasts) print_requests("all", kAll);
    print_phase("drain", kDrain, count);
    if (options_.limit > 0) {
      bench_work("connections", connections_);
      bench_work("requests", phases_[kAll].requests);
    }
    bench_ops("connection", connections_);
    bench_ops(broadcasts ? "delivery" : "request",
              broadcasts ? deliveries() : phases_[kAll].requests);
  }

 private:
  // Each process publishes to its own share of the subscribers.
  std::uint64_t deliveries() const {
    return phases_[kAll].requests * options_.connections / options_.processes;
  }

  static void add(Share::Phase& sum, const Share::Phase& one) {
    sum.begin_ns = sum.begin_ns == 0 ? one.begin_ns : std::min(sum.begin_ns, one.begin_ns);
    sum.end_ns = std::max(sum.end_ns, one.end_ns);
    sum.processor_ns += one.processor_ns;
    sum.requests += one.requests;
    sum.durations.add(one.durations);
  }

  static void print_us(const std::string& name, double us) { bench_metric(name.c_str(), "us", us); }

  void print_quantiles(const std::string& name, const Share::Phase& phase) const {
    if (phase.durations.count() == 0) return;
    print_us(name + "_p50_us", phase.durations.quantile_us(0.5));
    print_us(name + "_p99_us", phase.durations.quantile_us(0.99));
  }

  // For each of `units`: the time, and the server's processor time.
  void print_phase(const std::string& name, Part part, double units) const {
    const Share::Phase& phase = phases_[part];
    print_us(name + "_us", double(phase.end_ns - phase.begin_ns) / 1e3 / units);
    print_us(name + "_processor_us", double(phase.processor_ns) / 1e3 / units);
    print_quantiles(name, phase);
  }

  void print_requests(const std::string& name, Part part) const {
    const Share::Phase& phase = phases_[part];
    print_us(name + "_processor_us", double(phase.processor_ns) / 1e3 / double(phase.requests));
    print_quantiles(name, phase);
  }

  const CrowdOptions& options_;
  std::array<Share::Phase, kParts> phases_{};
  std::uint64_t connections_ = 0;
  double heap_ = 0, resident_ = 0;
};

// Starts the processes. The first is this one; it ends if another one fails.
class CrowdProcesses {
 public:
  // Calls `run(process)` in each.
  template <class Run>
  static void run(std::size_t count, Run run) {
    struct sigaction action = {};
    action.sa_handler = on_child;
    action.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &action, nullptr);
    children_.assign(count, 0);  // The handler finds no vector that grows.
    for (std::size_t i = 1; i < count; ++i) {
      const pid_t child = fork();
      if (child < 0) bench_die("fork");
      if (child > 0) {
        children_[i] = child;
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGCHLD, SIG_DFL);
      run(i);
      exit(0);
    }
    run(0);
    signal(SIGCHLD, SIG_DFL);
    for (const pid_t child : children_) check(child, 0);
  }

 private:
  static void on_child(int) {
    const int error = errno;
    for (pid_t& child : children_) child = check(child, WNOHANG) ? 0 : child;
    errno = error;
  }

  // Returns whether the process has ended well. Ends this one if it has failed.
  static bool check(pid_t child, int flags) {
    int status = 0;
    if (child == 0 || waitpid(child, &status, flags) != child) return false;
    if (status != 0) _exit(1);
    return true;
  }

  static inline std::vector<pid_t> children_;
};

// Reads the `process`th of numbers that commas separate, in the argument `name`. Returns 0 if it is
// absent.
inline long crowd_number(int argc, char** argv, const char* name, std::size_t process) {
  const char* at = bench_text(argc, argv, name, "");
  for (std::size_t i = 0; i < process && at != nullptr; ++i)
    if ((at = strchr(at, ',')) != nullptr) ++at;
  return at == nullptr ? 0 : strtol(at, nullptr, 10);
}

// The arguments of a process: our own, after the numbers of its server if that runs already, and
// after `more`, in pairs. The first of two equal names counts.
class CrowdArguments {
 public:
  CrowdArguments(int argc, char** argv, std::size_t process, std::vector<std::string> more = {})
      : texts_{argv[0]} {
    for (const char* name : {"external", "pid"})
      if (const long number = crowd_number(argc, argv, name, process); number > 0) {
        texts_.push_back(std::string("--") + name);
        texts_.push_back(std::to_string(number));
      }
    texts_.insert(texts_.end(), more.begin(), more.end());
    texts_.insert(texts_.end(), argv + 1, argv + argc);
    for (std::string& text : texts_) words_.push_back(text.data());
    words_.push_back(nullptr);
  }
  int count() const { return int(words_.size()) - 1; }
  char** words() { return words_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> words_;
};

#endif
