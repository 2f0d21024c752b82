// The answers of the name servers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "spate/sim/link.h"

namespace spate::sim {

class Zone {
 public:
  void set(std::string_view name, NameAnswer answer) { answers_[key(name)] = std::move(answer); }
  // Returns the answer for a name; no_such_host if it was not set.
  NameAnswer find(std::string_view name) const;

  std::uint64_t questions = 0;  // The number of queries.

 private:
  // Returns the name without the trailing dot, in lower case.
  static std::string key(std::string_view name);

  std::map<std::string, NameAnswer> answers_;
};

}  // namespace spate::sim
