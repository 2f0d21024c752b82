// The system calls of io_uring, and functions that fill in its entries.
#pragma once

#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

inline long io_uring_setup(unsigned entries, io_uring_params& params) {
  if (const int error = injected(SystemCall::io_uring_setup)) return -error;
  return opened(::syscall(SYS_io_uring_setup, entries, &params));
}

// Submits `submitted` entries, runs completed work, and waits for a completion, at most `timeout`;
// then -ETIME. Returns how many entries were taken, if any.
inline long io_uring_wait(int ring, unsigned submitted, Nanos timeout) {
  if (const int error = injected(SystemCall::io_uring_enter)) return -error;
  const timespec spec = to_timespec(timeout);
  const __kernel_timespec time{.tv_sec = spec.tv_sec, .tv_nsec = spec.tv_nsec};
  io_uring_getevents_arg how{};
  if (timeout < kForever) how.ts = reinterpret_cast<std::uintptr_t>(&time);
  return result_of(::syscall(SYS_io_uring_enter, ring, submitted, 1,
                             IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &how, sizeof(how)));
}

// Submits entries without waiting.
inline long io_uring_submit(int ring, unsigned submitted) {
  if (const int error = injected(SystemCall::io_uring_enter)) return -error;
  return result_of(::syscall(SYS_io_uring_enter, ring, submitted, 0, 0, nullptr, 0));
}

// Maps memory of a kernel file, which a child of fork() does not inherit. On an error returns
// nullptr, and sets errno.
inline void* map_unshared(std::size_t size, int file, std::uint64_t offset) {
  if (const int error = injected(SystemCall::map)) return errno = error, nullptr;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                              file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, size, MADV_DONTFORK);
  return memory;
}

// ---- entries

// Completes at once without effect.
inline void prepare_nop(io_uring_sqe& entry) { entry.opcode = IORING_OP_NOP; }

// Completes when `fd` has one of `events` (POLLIN ...), or is in error.
inline void prepare_poll(io_uring_sqe& entry, int fd, short events) {
  entry.opcode = IORING_OP_POLL_ADD;
  entry.fd = fd;
  entry.poll_events = static_cast<__u16>(events);
}

}  // namespace spate::sys
