// The simulated kernel of one World: descriptors, time, and what is going to happen.
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
#include "sim/calls/call_faults.h"
#include "sim/kernel/clock.h"
#include "sim/kernel/faults.h"
#include "sim/kernel/file.h"
#include "sim/kernel/findings.h"
#include "sim/kernel/history.h"
#include "sim/kernel/processes.h"
#include "sim/kernel/thread.h"
#include "sim/local/names.h"
#include "sim/net/zone.h"
#include "spate/offload.h"
#include "spate/time.h"

namespace spate::sim {

class Network;

// What has come of a step of the World.
enum class Step : std::uint8_t {
  went_on,   // Somebody did something, or the clock moved to what happens next.
  idle,      // Nothing happens before the limit, to which the clock has moved.
  stuck,     // The same, and nothing will happen after it.
  spinning,  // The clock has not moved for too many steps.
};

// The World around a kernel, which goes on while a loop sleeps.
class Surroundings {
 public:
  virtual Step step(Nanos limit) = 0;
  // Lets threads go on, and nothing else. False if none could.
  virtual bool step_threads() = 0;
  virtual Network& network() = 0;
  // nullptr while the host is down.
  virtual Loop* loop_of(int host) = 0;
  // Who waits for what: some lines.
  virtual std::string describe() const = 0;
  virtual std::vector<std::string> host_names() const = 0;

 protected:
  ~Surroundings() = default;
};

// What something is drawn for: one more draw for one purpose changes nothing for the others.
enum class Purpose : std::uint64_t {
  program,
  order,
  jitter,
  listener,
  loss,
  duplicate,
  reorder,
  scenario,
  strike,
  call,
  thread,
  name
};

class Kernel {
 public:
  using Happening = std::move_only_function<void()>;

  // Simulated descriptors begin here: below are the system's.
  static constexpr int kFirstDescriptor = 1024;
  // Whose code runs, outside of every host.
  static constexpr int kNoHost = -1;

  // The monotonic clock when the World begins, as if the machines had been up for an hour.
  static constexpr Nanos kBeginning = std::chrono::hours{1};

  Kernel(std::uint64_t seed, Surroundings& surroundings);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // The one of the calling thread, or nullptr.
  static Kernel* current();

  // ---- time
  Nanos now() const { return now_; }
  void move_to(Nanos time) { now_ = time; }
  void at(Nanos time, Happening happening);
  // When something is going to happen next; kForever: never.
  Nanos next() const { return happenings_.empty() ? kForever : happenings_.begin()->first.first; }
  // Lets all of it happen that is due, what becomes due meanwhile not. False if there was nothing.
  bool happen();
  // The caller, a loop that has nothing to do, lets the World go on. A thread's is asked for again
  // when it is `ready`.
  Step sleep(Nanos limit, Thread::Ready ready);
  Network& network() { return surroundings_.network(); }
  Loop* loop_of(int of_host) { return surroundings_.loop_of(of_host); }
  const Surroundings& surroundings() const { return surroundings_; }
  // What a host's own clocks say, the running one's; the World's where there is none.
  Nanos monotonic() const { return clocks.monotonic(host, now_); }
  Nanos wall() const { return clocks.wall(host, now_); }
  // When a span of the running host's has passed.
  Nanos deadline(Nanos span) const { return clocks.deadline(host, now_, span); }
  Nanos since_beginning() const { return now_ - kBeginning; }

  // How often, in a row, the running thread has looked for events, waited for nothing and found
  // nothing, since it has found some or the World last turned a host.
  int& looks_in_vain();

  // ---- descriptors; lowest first, one table for all hosts, so that a number tells its host
  int open(std::shared_ptr<File> file);
  // A child's of this host, whose descriptors are its own.
  int open_unlimited(std::shared_ptr<File> file);
  std::shared_ptr<File> find(int fd) const;
  // kNoHost if it is not open.
  int host_of(int fd) const;
  long close(int fd);
  void close_all();
  // But for those of crashed hosts.
  std::size_t open_count() const;
  std::size_t open_count(int of_host) const;
  // Of the host whose code runs. -EMFILE or what the limit says, if it may open none.
  long may_open() const;
  // From now on open() of this host fails with `error` where `count` are open.
  void limit(int of_host, std::size_t count, int error) { limits_[of_host] = {count, error}; }
  void lift_limit(int of_host) { limits_.erase(of_host); }
  // The host has memory again, of which its files are told.
  void tell_of_memory(int of_host);
  // Calls `close` with each socket of the host's, and leaves a file in its place that does nothing:
  // whoever still has the number may close it, and nobody else gets it before.
  void crash(int crashed, const std::function<void(Socket&)>& close);

  // ---- threads
  // A number for it; 0 if the system gives no more.
  std::uint64_t start_thread(Thread::Body body, void* argument);
  // Returns when it has ended. Its number is not valid any more.
  void join_thread(std::uint64_t number);
  // The caller, a thread's code or the World's, goes on when `ready()`, or at `limit`.
  void wait(const Thread::Ready& ready, Nanos limit);
  // Of a std::condition_variable.
  void wait_for_notice(const void* condition);
  enum class Notify : std::uint8_t { one, all };
  void notify(const void* condition, Notify whom);
  const std::map<std::uint64_t, std::unique_ptr<Thread>>& threads() const { return threads_; }
  // Threads of the host begin, and go on when they were notified, up to `most` later.
  void delay_threads(int of_host, Nanos most) { thread_delays_[of_host] = most; }
  // Called by a thread of this World's.
  void serve_this_thread();
  // Whose code waits for threads; they may run, then, though their host is down or paused.
  bool is_waited_for(const Thread& thread) const;
  // Code of the host's runs, or waits.
  bool is_inside(int of_host) const;

  // ---- the seed
  // From now on `draws` says what is drawn, in place of the seed: for who has other reasons than
  // chance (fuzz/world.cc).
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
  // What was sent within a host.
  void note_local(std::string_view bytes);
  // Whether a fault that the seed wants comes to pass: `kind` and the like say of what.
  bool strikes(Event fault) {
    fault.time = since_beginning();
    return faults.strike(fault, history);
  }

  int host = kNoHost;
  // While what has threads is destroyed, of a host or of the World: nobody else goes on, and the
  // threads wait for nothing that time would bring.
  bool hurries = false;
  std::string hosts_file;  // The text of each host's /etc/hosts; empty: the system's.
  Zone zone;
  Findings findings;
  History history;
  Faults faults;
  std::unique_ptr<CallFaults> call_faults;
  Clocks clocks;
  LocalNames local_names;
  Processes processes{*this};
  std::map<int, struct sigaction> signal_actions;
  std::map<int, std::unique_ptr<ThreadPool>> pools;  // ThreadPool::shared(), by host.

 private:
  Nanos late();
  [[noreturn]] void waits_in_vain() const;

  const std::uint64_t seed_;
  Draws other_draws_;
  Surroundings& surroundings_;
  Nanos now_;
  std::map<std::pair<Nanos, std::uint64_t>, Happening> happenings_;  // In order, by a number.
  std::uint64_t happening_count_ = 0;
  struct Descriptor {
    std::shared_ptr<File> file;
    int host = kNoHost;
  };
  struct Limit {
    std::size_t count;
    int error;
  };
  // Whose descriptors are nobody's any more.
  static constexpr int kCrashed = -2;

  std::vector<Descriptor> files_;
  std::map<int, std::size_t> open_counts_;  // By host.
  std::map<int, Limit> limits_;
  std::map<std::uint64_t, std::unique_ptr<Thread>> threads_;  // By number, as they were started.
  std::map<int, Nanos> thread_delays_;
  std::vector<int> waiting_hosts_;
  std::uint64_t thread_count_ = 0;
  std::uint64_t delay_count_ = 0;
  std::uint64_t draws_ = 0;
  int looks_in_vain_ = 0;  // Of the World's own thread.
};

}  // namespace spate::sim
