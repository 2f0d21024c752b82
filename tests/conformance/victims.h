// Watchers of any kind behind one interface, for tests that destroy them in every possible way.
#pragma once

#include <memory>
#include <vector>

#include "tests/conformance/harness.h"

namespace spate::testing {

enum class Kind {
  io,
  timer,
  periodic,
  signal,
  child,
  traced_child,
  stat,
  idle,
  prepare,
  check,
  fork,
  cleanup,
  async,
};
inline constexpr Kind kKinds[] = {Kind::io,      Kind::timer,        Kind::periodic, Kind::signal,
                                  Kind::child,   Kind::traced_child, Kind::stat,     Kind::idle,
                                  Kind::prepare, Kind::check,        Kind::fork,     Kind::cleanup,
                                  Kind::async};
const char* name_of(Kind kind);

// The objects that the watchers watch; outlives them.
struct Surroundings {
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  ~Surroundings();

  Pipe pipe;
  TempDir dir;
  std::vector<int> children;
};

class Victim {
 public:
  virtual ~Victim() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  // Causes the event that the watcher waits for. If nothing outside can cause it, feeds it.
  virtual void cause() = 0;
  virtual bool feed() = 0;
  virtual void clear_pending() = 0;
  virtual bool is_active() const = 0;
  virtual bool is_pending() const = 0;
  virtual int calls() const = 0;
  virtual void then(std::function<void()> action) = 0;
};

std::unique_ptr<Victim> make_victim(Kind kind, Loop& loop, Surroundings& surroundings);

}  // namespace spate::testing
