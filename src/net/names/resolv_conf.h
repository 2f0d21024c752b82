// The time and the tries that resolv.conf allows for an answer. c-ares reads the rest of that file,
// but knows these two under other names than the system does.
#pragma once

#include <string_view>

#include "spate/time.h"

namespace spate {

struct ResolvConf {
  Nanos timeout{0};  // Zero if it does not say.
  int tries = 0;     // The same.

  bool operator==(const ResolvConf&) const = default;
};

ResolvConf parse_resolv_conf(std::string_view text);

}  // namespace spate
