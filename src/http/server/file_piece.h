// Checks a range of a file before anything of it is sent.
#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "http/codec/system_error.h"
#include "sys/descriptor.h"

namespace spate::http {

// Returns EBADF and EINVAL for Exchange::send_file().
inline std::error_code check_piece(int file, std::uint64_t offset, std::uint64_t size) {
  if (offset > INT64_MAX || size > INT64_MAX - offset) return system_error(EINVAL);
  return sys::is_open(file) ? std::error_code() : system_error(EBADF);
}

}  // namespace spate::http
