#include "compat/libevent/log.h"

#include <event2/event.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace spate::libevent {
namespace {

constexpr std::size_t kLineSize = 1024;

event_log_cb log_callback;
event_fatal_cb fatal_callback;
ev_uint32_t debug_mask = EVENT_DBG_NONE;

const char* prefix(Severity severity) {
  switch (severity) {
    case Severity::debug:
      return "debug";
    case Severity::message:
      return "msg";
    case Severity::warning:
      return "warn";
    case Severity::error:
      return "err";
  }
  return "???";
}

void deliver(Severity severity, const char* line) {
  if (log_callback != nullptr) {
    log_callback(static_cast<int>(severity), line);
  } else {
    std::fprintf(stderr, "[%s] %s\n", prefix(severity), line);
  }
}

// Formats as much of the line as fits, and preserves errno for a callback that reads it.
[[gnu::format(printf, 2, 0)]] void write_line(char (&line)[kLineSize], const char* format,
                                              std::va_list arguments) {
  const int error = errno;
  if (std::vsnprintf(line, kLineSize, format, arguments) < 0) {
    line[0] = '\0';
  }
  errno = error;
}

// Adds the reason only if at least its colon fits.
void add_reason(char (&line)[kLineSize], int error) {
  const std::size_t length = std::strlen(line);
  if (length < kLineSize - 3) {
    std::snprintf(line + length, kLineSize - length, ": %s", std::strerror(error));
  }
  errno = error;
}

}  // namespace

void log(Severity severity, const char* format, ...) {
  if (severity == Severity::debug && !debug_enabled()) {
    return;
  }
  char line[kLineSize];
  std::va_list arguments;
  va_start(arguments, format);
  write_line(line, format, arguments);
  va_end(arguments);
  deliver(severity, line);
}

void warn(const char* format, ...) {
  const int error = errno;
  char line[kLineSize];
  std::va_list arguments;
  va_start(arguments, format);
  write_line(line, format, arguments);
  va_end(arguments);
  add_reason(line, error);
  deliver(Severity::warning, line);
}

void warnx(const char* format, ...) {
  char line[kLineSize];
  std::va_list arguments;
  va_start(arguments, format);
  write_line(line, format, arguments);
  va_end(arguments);
  deliver(Severity::warning, line);
}

void fatal(int code, const char* format, ...) {
  char line[kLineSize];
  std::va_list arguments;
  va_start(arguments, format);
  write_line(line, format, arguments);
  va_end(arguments);
  deliver(Severity::error, line);
  if (fatal_callback != nullptr) {
    fatal_callback(code);
  } else if (code == kAbort) {
    std::abort();
  }
  std::exit(code);
}

bool debug_enabled() { return debug_mask != EVENT_DBG_NONE; }

}  // namespace spate::libevent

void event_set_log_callback(event_log_cb callback) { spate::libevent::log_callback = callback; }

void event_set_fatal_callback(event_fatal_cb callback) {
  spate::libevent::fatal_callback = callback;
}

void event_enable_debug_logging(ev_uint32_t which) { spate::libevent::debug_mask = which; }
