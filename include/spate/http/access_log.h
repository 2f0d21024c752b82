// AccessLog: writes a line for each exchange of a server, without blocking its loop.
//
//   auto log = spate::must(spate::http::AccessLog::open("/var/log/site.log"));
//   spate::http::ServerOptions options;
//   options.log = log.writer();
//   spate::Signal reopen(*loop, [&] { log.reopen(); });
//   spate::must(reopen.start(SIGHUP));  // For logrotate.
//
// A thread writes the lines, so that a slow disk does not block the loop. Up to `max_queued` bytes
// wait for it; further lines are dropped and counted.
//
// Ownership: it owns the thread and the file. Destroying it writes the queued lines, and blocks the
// caller until the disk has taken them. With to_descriptor(), lines that the reader does not take
// within a second or two are dropped. Its writers may outlive it, and then do nothing.
// Threads: every function may be called by any thread, except the destructor and assignment. The
// writer may be copied to the servers of Workers. After a fork, lines of the child are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/exchange.h"

namespace spate::http {

// Values that a client sent are escaped, so that no request can forge a line or a member. Times are
// UTC.
enum class AccessLogFormat : std::uint8_t {
  // 192.0.2.1 - - [27/Nov/2026:20:05:15 +0000] "GET /a HTTP/1.1" 200 6
  // The address is Request::client().
  // Quotes, backslashes, controls and bytes beyond ASCII are written as \" \\ \x00.
  common,
  // As above, with the Referer and User-Agent fields; "-" without one.
  combined,
  // One object: time, peer, method, target, host, version, status, sent, received, duration_us,
  // referer, user_agent; route, reason and error if they are not empty; client if it is not the
  // peer. Invalid UTF-8 is U+FFFD.
  json,
};

struct AccessLogOptions {
  AccessLogFormat format = AccessLogFormat::combined;
  std::size_t max_queued = 1 << 20;  // Bytes; as many more may be in the hands of the thread.
};

class SPATE_EXPORT AccessLog {
 public:
  // Makes an AccessLog without a file, whose writers do nothing.
  AccessLog();
  AccessLog(AccessLog&& other) noexcept;
  AccessLog& operator=(AccessLog&& other) noexcept;
  ~AccessLog();

  // Opens a file, and appends to it. A new file has mode 0640. Errors: those of open(2); EAGAIN if
  // no thread can be started; ENOMEM.
  [[nodiscard("destroying the AccessLog closes the file")]]
  static Result<AccessLog> open(std::string path, const AccessLogOptions& options = {});
  // Writes to a descriptor of the caller's, such as STDOUT_FILENO, which must stay open until the
  // AccessLog is destroyed. Errors: as above.
  [[nodiscard("destroying the AccessLog ends its thread")]]
  static Result<AccessLog> to_descriptor(int descriptor, const AccessLogOptions& options = {});

  // Returns a function for ServerOptions::log.
  std::function<void(const AccessRecord& record)> writer() const;
  void write(const AccessRecord& record) const;

  // Opens the file again by its path, after the lines that are queued: for a file that was renamed.
  // If that fails, the old file is used further, and error() has the reason. Has no effect with
  // to_descriptor().
  void reopen();

  // Returns how many lines were dropped: because too many were queued, or by an error of writing.
  std::uint64_t dropped() const;
  // Returns the error of the last write or reopen(); none if it succeeded.
  std::error_code error() const;

 private:
  class Core;
  explicit AccessLog(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace spate::http
