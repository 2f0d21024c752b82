// Reads files without waiting for a disk, and brings them into memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/export.h"

namespace spate::sys {

// Reads bytes that are in memory. Returns their number, which is smaller than `size` at the end of
// the file or where further bytes are not in memory. Returns -EAGAIN if the first byte is not in
// memory, or if the file system cannot report that.
SPATE_EXPORT long read_at_once(int fd, void* data, std::size_t size, std::int64_t offset);

// Returns 0 if samples of a part of a file are in memory; -ENODATA if the file ends before;
// otherwise the errors of read_at_once().
SPATE_EXPORT long find_in_memory(int fd, std::size_t size, std::int64_t offset);

// Waits until a part of a file is in memory. Returns 0; -ENODATA if the file ends before; an error
// of reading.
SPATE_EXPORT long bring_into_memory(int fd, std::size_t size, std::int64_t offset);

}  // namespace spate::sys
