// A clock and a backend that a test controls, so that no test waits for time to pass.
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "spate/layer/layer.h"

namespace spate::testing {

// Stands still until a test moves it.
class ScriptedClock final : public Clock {
 public:
  Nanos monotonic() override { return monotonic_; }
  WallTime wall() override { return wall_; }

  // Advances both clocks, as time passes.
  void advance(Nanos span) {
    monotonic_ += span;
    wall_ += span;
  }
  // Changes the wall clock, as settimeofday() does.
  void jump_wall(Nanos span) { wall_ += span; }

 private:
  Nanos monotonic_{1'000'000'000};
  WallTime wall_{std::chrono::seconds{1'700'000'000}};
};

// Records the loop's registrations, reports the events that the test wants, and advances the clock
// instead of waiting.
class ScriptedBackend final : public Backend {
 public:
  struct Change {
    int fd;
    Events before;
    Events after;
  };

  explicit ScriptedBackend(ScriptedClock& clock) : clock_(clock) {}

  std::string_view name() const override { return "scripted"; }

  long modify(int fd, Events before, Events after, std::uint32_t generation) override {
    ++calls_.modify;
    changes.push_back({fd, before, after});
    if (any(after)) {
      const auto refusal = refusals.find(fd);
      if (refusal != refusals.end()) return refusal->second;
      registered[fd] = {after, generation};
    } else {
      registered.erase(fd);
    }
    return 0;
  }

  long wait(Nanos timeout, ReadyList& ready) override {
    ++calls_.wait;
    waits.push_back(timeout);
    for (const Ready& event : next_) ready.push(event);
    const bool idle = next_.empty();
    next_.clear();
    if (idle && timeout >= kForever) return -EDEADLK;  // Would never return.
    if (idle && timeout > Nanos{0}) clock_.advance(timeout);
    return wait_error;
  }

  std::error_code reopen() override {
    ++reopened;
    registered.clear();
    return {};
  }

  // The next wait reports this descriptor, as it is registered now.
  void report(int fd, Events events) {
    next_.push_back({fd, registered[fd].generation, events, 0});
  }
  // The next wait reports exactly this event.
  void report(const Ready& ready) { next_.push_back(ready); }

  struct Registration {
    Events events = Events::none;
    std::uint32_t generation = 0;
  };
  std::map<int, Registration> registered;
  std::map<int, long> refusals;  // The result of modify() for a descriptor.
  std::vector<Change> changes;
  std::vector<Nanos> waits;
  long wait_error = 0;  // The result of wait(): a negated errno.
  int reopened = 0;

 private:
  ScriptedClock& clock_;
  std::vector<Ready> next_;
};

// A loop on both, which the test can access.
struct ScriptedLoop {
  ScriptedClock clock;
  ScriptedBackend* backend;
  std::unique_ptr<Loop> loop;

  explicit ScriptedLoop(const LoopOptions& options = {}) : ScriptedLoop(LayerOptions{options}) {}
  explicit ScriptedLoop(LayerOptions options) {
    auto owned = std::make_unique<ScriptedBackend>(clock);
    backend = owned.get();
    options.loop.clock = &clock;
    loop = std::move(*NodeLoop::create(std::move(owned), options));
    backend->changes.clear();
  }
};

}  // namespace spate::testing
