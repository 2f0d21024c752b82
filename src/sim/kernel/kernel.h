// The simulated kernel of one World: descriptors, time, and scheduled events.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "sim/kernel/clock.h"
#include "sim/kernel/faults.h"
#include "sim/kernel/file.h"
#include "sim/kernel/findings.h"
#include "sim/kernel/history.h"
#include "sim/kernel/processes.h"
#include "sim/kernel/thread.h"
#include "spate/function.h"
#include "spate/offload.h"
#include "spate/time.h"

namespace spate::sim {

class Socket;

// The result of a step of the World.
enum class Step : std::uint8_t {
  went_on,   // Some code ran, or the clock advanced to the next event.
  idle,      // No event before the limit, to which the clock has advanced.
  stuck,     // As `idle`, and no event is scheduled after it.
  spinning,  // The clock has not advanced for too many steps.
};

// The World around a kernel. It advances while a loop sleeps.
class WorldInterface {
 public:
  virtual Step step(Nanos limit) = 0;
  // Runs threads only. False if none can run.
  virtual bool step_threads() = 0;
  // Returns nullptr while the host is down.
  virtual Loop* loop_of(int host) = 0;
  // Returns lines that describe all waits.
  virtual std::string describe() const = 0;
  virtual std::vector<std::string> host_names() const = 0;

 protected:
  ~WorldInterface() = default;
};

// The purpose of a random number: an additional draw for one purpose does not affect the others.
enum class Purpose : std::uint64_t {
  program,
  order,
  jitter,
  listener,
  loss,
  duplicate,
  reorder,
  scenario,
  inject,
  call,
  thread,
  name,
  disk
};

// The devices of a World, such as its network, are a Simulation's (sim/syscalls/simulation.h). Each
// Kernel is the base of one.
class Kernel {
 public:
  using ScheduledEvent = Function<void()>;

  // Simulated descriptors begin here; lower ones are the system's.
  static constexpr int kFirstDescriptor = 1024;
  // The running host, outside of all hosts.
  static constexpr int kNoHost = -1;

  // The monotonic clock when the World begins, as if the machines had been up for an hour.
  static constexpr Nanos kBeginning = std::chrono::hours{1};

  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Returns the kernel of the calling thread, or nullptr.
  static Kernel* current();

  // ---- time
  Nanos now() const { return now_; }
  void move_to(Nanos time) { now_ = time; }
  void at(Nanos time, ScheduledEvent event);
  // Returns the time of the next scheduled event; kForever without one.
  Nanos next() const { return scheduled_.empty() ? kForever : scheduled_.begin()->first.first; }
  // Calls all events that are due, except those that become due meanwhile. Returns whether any was
  // due.
  bool run_due_events();
  // Called by a loop that sleeps: advances the World. On a thread, returns when `ready`.
  Step sleep(Nanos limit, Thread::Ready ready);
  Loop* loop_of(int of_host) { return world_.loop_of(of_host); }
  const WorldInterface& world() const { return world_; }
  // Return the clocks of the running host; the World's where no host runs.
  Nanos monotonic() const { return clocks.monotonic(host, now_); }
  Nanos wall() const { return clocks.wall(host, now_); }
  // Returns when a span of the running host's time has passed.
  Nanos deadline(Nanos span) const { return clocks.deadline(host, now_, span); }
  Nanos since_beginning() const { return now_ - kBeginning; }

  // Returns how many consecutive polls of the running thread have found nothing, since it has found
  // events or the World last ran a host.
  int& failed_polls();

  // ---- descriptors: lowest first, in one table for all hosts, so that a number determines its
  // host
  int open(std::shared_ptr<File> file);
  // Opens a file of a child process, whose descriptors do not count for the host.
  int open_unlimited(std::shared_ptr<File> file);
  std::shared_ptr<File> find(int fd) const;
  // Returns kNoHost if it is not open.
  int host_of(int fd) const;
  long close(int fd);
  void close_all();
  // Counts the open descriptors, without those of crashed hosts.
  std::size_t open_count() const;
  std::size_t open_count(int of_host) const;
  // Checks the limit of the running host. Returns -EMFILE or the limit's error.
  long may_open() const;
  // Makes open() of this host fail with `error` while `count` are open.
  void limit(int of_host, std::size_t count, int error) { limits_[of_host] = {count, error}; }
  void lift_limit(int of_host) { limits_.erase(of_host); }
  // Notifies the host's files that there is memory again.
  void on_memory_freed(int of_host);
  // Calls `close` with each socket of the host, and replaces it by a DeadFile: its number can still
  // be closed, and is not reused before.
  void crash(int crashed, const std::function<void(Socket&)>& close);

  // ---- threads
  // Starts a thread. Returns its number; 0 if the system starts no more.
  std::uint64_t start_thread(Thread::Body body, void* argument);
  // Returns when it has ended. Its number is invalid then.
  void join_thread(std::uint64_t number);
  // Suspends the calling thread, or the World's, until `ready()`, or until `limit`.
  void wait(const Thread::Ready& ready, Nanos limit);
  // Waits for a std::condition_variable.
  void wait_for_notice(const void* condition);
  enum class Notify : std::uint8_t { one, all };
  void notify(const void* condition, Notify whom);
  const std::map<std::uint64_t, std::unique_ptr<Thread>>& threads() const { return threads_; }
  // Delays threads of the host by up to `most`, when they begin and when they are notified.
  void delay_threads(int of_host, Nanos most) { thread_delays_[of_host] = most; }
  // Called by a thread of this World.
  void serve_this_thread();
  // Returns whether code waits for the thread. It may then run although its host is down or paused.
  bool is_waited_for(const Thread& thread) const;
  // Returns whether code of the host runs, or waits.
  bool is_inside(int of_host) const;

  // ---- random numbers
  // From now on `draws` replaces the seed: for a fuzzer (fuzz/world.cc).
  using Draws = std::function<std::uint64_t(Purpose, std::uint64_t number)>;
  void draw_by(Draws draws) { other_draws_ = std::move(draws); }
  std::uint64_t draw(Purpose purpose, std::uint64_t number) const {
    if (other_draws_) return other_draws_(purpose, number);
    return mix(seed_ ^ mix(static_cast<std::uint64_t>(purpose) ^ mix(number)));
  }
  std::uint64_t draw_next() { return draw(Purpose::program, ++draws_); }
  void note(Event event) {
    event.time = since_beginning();
    history.note(event);
  }
  // Records bytes sent within a host.
  void note_local(std::string_view bytes);
  // Returns whether a fault of the seed takes effect; `fault` describes it.
  bool injects(Event fault) {
    fault.time = since_beginning();
    return faults.inject(fault, history);
  }

  int host = kNoHost;
  // During the destruction of objects with threads, of a host or of the World: no other code runs,
  // and threads do not wait for time to pass.
  bool is_tearing_down = false;
  std::string hosts_file;  // The contents of each host's /etc/hosts; empty: the system's.
  Findings findings;
  History history;
  Faults faults;
  Clocks clocks;
  Processes processes{*this};
  std::map<int, struct sigaction> signal_actions;
  std::map<int, std::unique_ptr<ThreadPool>> pools;  // ThreadPool::shared(), by host.

 protected:
  Kernel(std::uint64_t seed, WorldInterface& world);
  ~Kernel();

 private:
  Nanos late();
  [[noreturn]] void waits_in_vain() const;

  const std::uint64_t seed_;
  Draws other_draws_;
  WorldInterface& world_;
  Nanos now_;
  // By time and sequence number.
  std::map<std::pair<Nanos, std::uint64_t>, ScheduledEvent> scheduled_;
  std::uint64_t scheduled_count_ = 0;
  struct Descriptor {
    std::shared_ptr<File> file;
    int host = kNoHost;
  };
  struct Limit {
    std::size_t count;
    int error;
  };
  // Owner of the descriptors of crashed hosts.
  static constexpr int kCrashed = -2;

  std::vector<Descriptor> files_;
  std::map<int, std::size_t> open_counts_;  // By host.
  std::map<int, Limit> limits_;
  std::map<std::uint64_t, std::unique_ptr<Thread>> threads_;  // By number, in order of their start.
  std::map<int, Nanos> thread_delays_;
  std::vector<int> waiting_hosts_;
  std::uint64_t thread_count_ = 0;
  std::uint64_t delay_count_ = 0;
  std::uint64_t draws_ = 0;
  int failed_polls_ = 0;  // For the World's own thread.
};

}  // namespace spate::sim
