// A backend that reports true events late and false events now and then, as kernels do.
#pragma once

#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "tests/support/random.h"

namespace spate::testing {

// One in so many; 0: never.
struct Faults {
  std::size_t late = 0;      // An event is delayed: a level-triggered backend repeats it.
  std::size_t spurious = 0;  // For each descriptor at each wait: all its events, falsely.
  std::size_t stale = 0;     // At each wait: an event of an earlier registration.
  std::uint64_t seed = 1;
};

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> inner, const Faults& faults)
      : inner_(std::move(inner)), faults_(faults), random_(faults.seed) {}

  std::string_view name() const override { return inner_->name(); }

  long modify(int fd, Events before, Events after, std::uint32_t generation) override {
    const long result = inner_->modify(fd, before, after, generation);
    note(fd, result < 0 ? Events::none : after, generation);
    return result;
  }
  void closing(int fd, Events before) override {
    inner_->closing(fd, before);
    note(fd, Events::none, 0);
  }

  long wait(Nanos timeout, ReadyList& ready) override {
    ReadyList found;
    const long result = inner_->wait(timeout, found);
    calls_ = inner_->kernel_calls();
    for (const Ready& event : found) {
      if (chance(faults_.late)) {
        ++held_back;
      } else {
        ready.push(event);
      }
    }
    for (const auto& [fd, told] : told_) {
      if (!chance(faults_.spurious)) continue;
      ready.push({fd, told.second, told.first, 0});
      ++made_up;
    }
    if (!past_.empty() && chance(faults_.stale)) {
      const auto& [fd, generation] = past_[random_.below(past_.size())];
      ready.push({fd, generation, kIoEvents, 0});
      ++replayed;
    }
    return result;
  }

  std::error_code reopen() override {
    told_.clear();
    return inner_->reopen();
  }
  std::error_code start_over() override {
    told_.clear();
    return inner_->start_over();
  }
  Result<int> poll_fd() override { return inner_->poll_fd(); }

  int held_back = 0;
  int made_up = 0;
  int replayed = 0;

 private:
  bool chance(std::size_t n) { return n != 0 && random_.one_in(n); }

  void note(int fd, Events events, std::uint32_t generation) {
    calls_ = inner_->kernel_calls();
    const auto known = told_.find(fd);
    if (known != told_.end() && known->second.second != generation) {
      past_.emplace_back(fd, known->second.second);
    }
    if (any(events)) {
      told_[fd] = {events, generation};
    } else {
      told_.erase(fd);
    }
  }

  std::unique_ptr<Backend> inner_;
  Faults faults_;
  Random random_;
  std::map<int, std::pair<Events, std::uint32_t>> told_;
  std::vector<std::pair<int, std::uint32_t>> past_;
};

}  // namespace spate::testing
