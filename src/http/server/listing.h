// The HTML page that lists a directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sys/directory.h"

namespace spate::http {

// Further names are left out, and the page mentions it.
inline constexpr std::size_t kMostListed = 10'000;

enum class Hidden : std::uint8_t { left_out, listed };

// Returns the page. `path` is the directory's, decoded, for the title. `directory` is open.
std::string list_directory(sys::Directory& directory, std::string_view path, Hidden hidden);

}  // namespace spate::http
