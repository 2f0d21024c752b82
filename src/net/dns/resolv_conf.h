// Parses the options `timeout` and `attempts` of resolv.conf(5). c-ares reads the rest of the file,
// but uses other names for these two.
#pragma once

#include <string_view>

#include "spate/time.h"

namespace spate {

struct ResolvConf {
  Nanos timeout{5'000'000'000};
  int tries = 0;     // Zero if not given.

  bool operator==(const ResolvConf&) const = default;
};

ResolvConf parse_resolv_conf(std::string_view text);

}  // namespace spate
