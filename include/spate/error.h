// Error: the errors that spate itself defines. All others are errno values in
// std::system_category().
// Threads: any; the values are constants or plain copies.
#pragma once

#include <expected>
#include <source_location>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/export.h"

namespace spate {

enum class Error {
  loop_forked = 1,       // The loop was made by the parent process: call Loop::after_fork() first.
  unknown_backend = 2,   // Loop::backends() lists the names.
  fd_out_of_range = 3,   // Too high for the select backend (FD_SETSIZE, 1,024 on Linux).
  not_pollable = 4,      // This backend has no descriptor for Loop::poll_fd().
  idle_timeout = 5,      // A Stream moved no byte for the idle timeout.
  read_timeout = 6,      // Nothing was received for the read timeout.
  write_timeout = 7,     // The peer read nothing for the write timeout.
  connect_timeout = 8,   // The connection was not established in time.
  queue_full = 9,        // The queue of a Stream or ThreadPool is full.
  unread_full = 10,      // A Stream's handler left too much input unused.
  deadline = 11,         // Not done before the deadline.
  tls_handshake = 12,    // No common parameters, or the peer does not speak TLS.
  tls_certificate = 13,  // A certificate was rejected, by us or by the peer.
  tls_truncated = 14,    // EOF without close_notify: data may be missing.
  tls_protocol = 15,     // Corrupted records, or a violation of the protocol.
  ended = 16,            // EOF before the next message.
  truncated = 17,        // EOF inside a message.
};

SPATE_EXPORT const std::error_category& error_category();
SPATE_EXPORT std::error_code make_error_code(Error error);

// A value or an error.
template <class T>
using Result = std::expected<T, std::error_code>;

// Prints the error and the source location to stderr, and calls exit(1).
[[noreturn, gnu::cold]] SPATE_EXPORT void give_up(std::error_code error,
                                                  std::source_location where);
[[noreturn, gnu::cold]] SPATE_EXPORT void give_up(std::string_view error,
                                                  std::source_location where);

// Returns the value. Without one, ends the program by give_up(). For start-up code:
//   auto loop = must(Loop::create());
template <class T>
T must(Result<T> result, std::source_location where = std::source_location::current()) {
  if (!result) give_up(result.error(), where);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
inline void must(std::error_code error,
                 std::source_location where = std::source_location::current()) {
  if (error) give_up(error, where);
}

}  // namespace spate

template <>
struct std::is_error_code_enum<spate::Error> : std::true_type {};
