// io_uring's system calls, and how the entries are filled in that ask for something.
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
  return result_of(::syscall(SYS_io_uring_setup, entries, &params));
}

// Hands in `submitted` entries, runs what has come to completion, and waits for a completion,
// `timeout` at most; -ETIME after that. How many entries were taken, if any.
inline long io_uring_wait(int ring, unsigned submitted, Nanos timeout) {
  if (const int error = injected(SystemCall::io_uring_enter)) return -error;
  const timespec spec = to_timespec(timeout);
  const __kernel_timespec time{.tv_sec = spec.tv_sec, .tv_nsec = spec.tv_nsec};
  io_uring_getevents_arg how{};
  if (timeout < kForever) how.ts = reinterpret_cast<std::uintptr_t>(&time);
  return result_of(::syscall(SYS_io_uring_enter, ring, submitted, 1,
                             IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &how, sizeof(how)));
}

// Hands in entries, and nothing else.
inline long io_uring_submit(int ring, unsigned submitted) {
  if (const int error = injected(SystemCall::io_uring_enter)) return -error;
  return result_of(::syscall(SYS_io_uring_enter, ring, submitted, 0, 0, nullptr, 0));
}

// Memory of a file of the kernel's, which a child of fork() does not have. nullptr, and errno says
// why.
inline void* map_unshared(std::size_t size, int file, std::uint64_t offset) {
  if (const int error = injected(SystemCall::map)) return errno = error, nullptr;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                              file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, size, MADV_DONTFORK);
  return memory;
}

// ---- entries

// Does nothing, and is complete at once.
inline void prepare_nop(io_uring_sqe& entry) { entry.opcode = IORING_OP_NOP; }

// Complete once `fd` has one of `events` (POLLIN ...), or is in error.
inline void prepare_poll(io_uring_sqe& entry, int fd, short events) {
  entry.opcode = IORING_OP_POLL_ADD;
  entry.fd = fd;
  entry.poll_events = static_cast<__u16>(events);
}

}  // namespace spate::sys
