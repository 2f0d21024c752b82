// Version: the HTTP version of a message.
// Threads: any; the values are constants or plain copies.
#pragma once

#include <cstdint>

namespace spate::http {

enum class Version : std::uint8_t { http_1_0, http_1_1, http_2 };

}  // namespace spate::http
