// event_config: a program's requirements for a base.
//
// Semantics: event2/event.h (event_config_*, event_base_new_with_config); probed: the environment
// and the features of each method.
#pragma once

#include <climits>
#include <cstdint>

#include "compat/libevent/event_api.h"

namespace spate::libevent {

struct Method {
  const char* name;      // spate's name as well.
  const char* variable;  // Set in the environment, it forbids the method.
  int features;          // EV_FEATURE_*
};

inline constexpr Method kMethods[] = {
    {"epoll", "EVENT_NOEPOLL", EV_FEATURE_ET | EV_FEATURE_O1 | EV_FEATURE_EARLY_CLOSE},
    {"poll", "EVENT_NOPOLL", EV_FEATURE_FDS | EV_FEATURE_EARLY_CLOSE},
    {"select", "EVENT_NOSELECT", EV_FEATURE_FDS},
};

// The number of calls, and the first priority, after which the loop polls for new events.
struct DispatchLimits {
  std::int64_t interval = -1;  // Nanoseconds; negative: no limit.
  int callbacks = INT_MAX;
  int from_priority = 0;
};

// Returns the first method that `config`, which may be null, and the environment allow, or null.
const Method* choose_method(const event_config* config);
// Returns the requested flags (EVENT_BASE_FLAG_*), with those of the environment.
[[nodiscard]] int flags_from(const event_config* config);
DispatchLimits limits_from(const event_config* config);

}  // namespace spate::libevent

struct event_config {
  unsigned avoided = 0;  // A bit for each of kMethods.
  int features = 0;
  int flags = 0;
  spate::libevent::DispatchLimits limits;
};
