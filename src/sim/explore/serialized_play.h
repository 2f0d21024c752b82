// Serializes a Play, for another process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/explore/play.h"

namespace spate::sim {

std::string serialize(const Play& play);
// Returns nullopt if it is truncated.
std::optional<Play> parse_play(std::string_view bytes);

}  // namespace spate::sim
