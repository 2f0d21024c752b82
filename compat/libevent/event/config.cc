#include "compat/libevent/event/config.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "compat/libevent/timeval.h"

namespace spate::libevent {

const Method* choose_method(const event_config* config) {
  static constexpr event_config kNothing;
  const event_config& wanted = config != nullptr ? *config : kNothing;
  const bool heeds_environment = (wanted.flags & EVENT_BASE_FLAG_IGNORE_ENV) == 0;
  for (std::size_t i = 0; i < std::size(kMethods); ++i) {
    const Method& method = kMethods[i];
    if ((wanted.avoided >> i & 1) != 0) continue;
    if ((wanted.features & ~method.features) != 0) continue;
    if (heeds_environment && std::getenv(method.variable) != nullptr) continue;
    return &method;
  }
  return nullptr;
}

int flags_from(const event_config* config) {
  int flags = config != nullptr ? config->flags : 0;
  if ((flags & EVENT_BASE_FLAG_IGNORE_ENV) != 0) return flags;
  if (std::getenv("EVENT_EPOLL_USE_CHANGELIST") != nullptr) {
    flags |= EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST;
  }
  return flags;
}

DispatchLimits limits_from(const event_config* config) {
  return config != nullptr ? config->limits : DispatchLimits{};
}

}  // namespace spate::libevent

using namespace spate::libevent;

event_config* event_config_new() { return new (std::nothrow) event_config; }
void event_config_free(event_config* config) { delete config; }

// Avoiding an unknown method is not an error.
int event_config_avoid_method(event_config* config, const char* name) {
  if (name == nullptr) {
    errno = EINVAL;
    return -1;
  }
  for (std::size_t i = 0; i < std::size(kMethods); ++i) {
    if (std::strcmp(name, kMethods[i].name) == 0) config->avoided |= 1U << i;
  }
  return 0;
}

int event_config_require_features(event_config* config, int features) {
  if (config == nullptr) return -1;
  config->features = features;
  return 0;
}

int event_config_set_flag(event_config* config, int flag) {
  if (config == nullptr) return -1;
  config->flags |= flag;
  return 0;
}

int event_config_set_num_cpus_hint(event_config* config, int) { return config == nullptr ? -1 : 0; }

int event_config_set_max_dispatch_interval(event_config* config, const timeval* max_interval,
                                           int max_callbacks, int min_priority) {
  config->limits = {
      .interval = max_interval != nullptr ? nanos_of(*max_interval) : -1,
      .callbacks = max_callbacks >= 0 ? max_callbacks : INT_MAX,
      .from_priority = min_priority > 0 ? min_priority : 0,
  };
  return 0;
}

const char** event_get_supported_methods() {
  static const char* names[std::size(kMethods) + 1];
  for (std::size_t i = 0; i < std::size(kMethods); ++i) names[i] = kMethods[i].name;
  return names;
}

const char* event_get_version() { return "2.1.12-stable"; }
ev_uint32_t event_get_version_number() { return 0x02010c00; }
