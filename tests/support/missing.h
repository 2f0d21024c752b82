// Reasons why a test is skipped: the missing tool or limit, and how to provide it.
#pragma once

#include <string>
#include <string_view>

namespace spate::testing {

// Returns the reason if the test needs `count` descriptors.
inline std::string too_few_descriptors(unsigned long count) {
  const std::string number = std::to_string(count);
  return "RLIMIT_NOFILE is below " + number + ": raise it as root (ulimit -Hn " + number + ")";
}

// Returns the reason if the test needs io_uring. `why` is BackendInfo::reason.
inline std::string no_ring(std::string_view why) {
  return "io_uring is missing (" + std::string(why) +
         "): allow it (sysctl kernel.io_uring_disabled=0, and the container's seccomp profile)";
}

// Returns the reason if the test needs a network namespace.
inline std::string no_network_namespace() {
  return "a network namespace is not permitted: run as root, or allow namespaces of users "
         "(sysctl user.max_user_namespaces)";
}

}  // namespace spate::testing
