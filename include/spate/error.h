// The few errors that are spate's own. Everything else is the system's errno in
// std::system_category().
#pragma once

#include <expected>
#include <source_location>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/export.h"

namespace spate {

enum class Error {
  loop_forked =
      1,  // This process is a fork of the one that made the loop: call Loop::after_fork() first.
  unknown_backend = 2,  // No backend of that name; Loop::backends() lists them.
  fd_out_of_range =
      3,             // The select backend cannot hold this descriptor (FD_SETSIZE, 1,024 on Linux).
  not_pollable = 4,  // This backend has no descriptor of its own to wait on (Loop::poll_fd()).
  idle_timeout = 5,  // Nothing has moved on a Stream for as long as was allowed.
  read_timeout = 6,  // Nothing has come for as long as was allowed.
  write_timeout = 7,    // The peer has taken nothing for as long as was allowed.
  connect_timeout = 8,  // The connection did not come about in time.
  queue_full = 9,    // More was written to a Stream, or given to a ThreadPool, than may wait there.
  unread_full = 10,  // More has come to a Stream than its handler may leave unused.
  deadline = 11,     // What had to be done by a certain time was not.
};

SPATE_EXPORT const std::error_category& error_category();
SPATE_EXPORT std::error_code make_error_code(Error error);

// What was asked for, or why there is none.
template <class T>
using Result = std::expected<T, std::error_code>;

// A line on stderr says where and why; then the program ends, by exit(1).
[[noreturn, gnu::cold]] SPATE_EXPORT void give_up(std::error_code error,
                                                  std::source_location where);

// For the start of a program that cannot do without: what was made, or the end by give_up().
//   auto loop = must(Loop::create());
template <class T>
T must(Result<T> result, std::source_location where = std::source_location::current()) {
  if (!result) give_up(result.error(), where);
  return std::move(*result);
}
inline void must(std::error_code error,
                 std::source_location where = std::source_location::current()) {
  if (error) give_up(error, where);
}

}  // namespace spate

template <>
struct std::is_error_code_enum<spate::Error> : std::true_type {};
