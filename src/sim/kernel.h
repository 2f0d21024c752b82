// The simulated kernel of one World: descriptors, time, and what is going to happen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "sim/call_faults.h"
#include "sim/clock.h"
#include "sim/faults.h"
#include "sim/file.h"
#include "sim/findings.h"
#include "sim/history.h"
#include "sim/local_names.h"
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
  virtual Network& network() = 0;
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
  Step sleep(Nanos limit) { return surroundings_.step(limit); }
  Network& network() { return surroundings_.network(); }
  const Surroundings& surroundings() const { return surroundings_; }
  // What a host's own clocks say, the running one's; the World's where there is none.
  Nanos monotonic() const { return clocks.monotonic(host, now_); }
  Nanos wall() const { return clocks.wall(host, now_); }
  // When a span of the running host's has passed.
  Nanos deadline(Nanos span) const { return clocks.deadline(host, now_, span); }
  Nanos since_beginning() const { return now_ - kBeginning; }

  // ---- descriptors; lowest first, one table for all hosts, so that a number tells its host
  int open(std::shared_ptr<File> file);
  std::shared_ptr<File> find(int fd) const;
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
  // Calls `close` with each socket of the host's, and leaves a file in its place that does nothing:
  // whoever still has the number may close it, and nobody else gets it before.
  void crash(int crashed, const std::function<void(Socket&)>& close);

  // ---- the seed
  std::uint64_t draw(Purpose purpose, std::uint64_t number) const {
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
  std::string hosts_file;  // The text of each host's /etc/hosts; empty: the system's.
  Findings findings;
  History history;
  Faults faults;
  std::unique_ptr<CallFaults> call_faults;
  Clocks clocks;
  LocalNames local_names;

 private:
  const std::uint64_t seed_;
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
  std::uint64_t draws_ = 0;
};

}  // namespace spate::sim
