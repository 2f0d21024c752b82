// What name servers say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "spate/sim/world.h"

namespace spate::sim {

class Zone {
 public:
  void set(std::string_view name, NameAnswer answer) { answers_[key(name)] = std::move(answer); }
  // A name that nobody has set does not exist.
  NameAnswer find(std::string_view name) const;

  std::uint64_t questions = 0;  // That were asked.

 private:
  // Without the dot at the end, in small letters.
  static std::string key(std::string_view name);

  std::map<std::string, NameAnswer> answers_;
};

}  // namespace spate::sim
