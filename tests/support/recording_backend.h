// A backend that records its calls, for tests of its callers.
#pragma once

#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace spate::testing {

class RecordingBackend final : public Backend {
 public:
  struct Change {
    int fd;
    Events before;
    Events after;
    bool operator==(const Change&) const = default;
  };

  std::string_view name() const override { return "recording"; }
  long modify(int fd, Events before, Events after, std::uint32_t generation) override {
    changes.push_back({fd, before, after});
    const auto refusal = refusals.find(fd);
    if (any(after) && refusal != refusals.end()) return refusal->second;
    generations[fd] = generation;
    return 0;
  }
  void closing(int fd, Events before) override { closings.push_back({fd, before, Events::none}); }
  long wait(Nanos, ReadyList&) override { return 0; }
  std::error_code reopen() override { return {}; }

  // Returns the changes since the last call.
  std::vector<Change> take_changes() { return std::exchange(changes, {}); }

  std::vector<Change> changes;
  std::vector<Change> closings;
  std::map<int, long> refusals;
  std::map<int, std::uint32_t> generations;
};

}  // namespace spate::testing
