// Serializes a Play, for another process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/explore/play.h"

namespace spate::sim {

std::string write_letter(const Play& play);
// Returns nullopt if it is truncated.
std::optional<Play> read_letter(std::string_view letter);

}  // namespace spate::sim
