// The library's messages, to the program's log callback or to stderr, and fatal errors.
//
// Semantics: event2/event.h ("Log severities", event_set_log_callback, event_set_fatal_callback,
// event_enable_debug_logging); the form of the lines and the order of the calls: probes.
//
// The callbacks are globals, as in libevent: they are set before other threads exist. A callback
// may throw or jump past everything here, so nothing in this file owns anything while one runs.
#pragma once

namespace spate::libevent {

enum class Severity { debug, message, warning, error };

// libevent's code for a fatal callback that should abort rather than exit.
inline constexpr int kAbort = static_cast<int>(0xdeaddeadU);

// One line, without its end; cut at 1,023 characters. Debug lines are written only after the
// program has enabled them, so a call on a hot path first checks debug_enabled().
[[gnu::format(printf, 2, 3)]] void log(Severity severity, const char* format, ...);

// A warning; warn() adds ": " and the text of errno.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void warnx(const char* format, ...);

// Logs an error, calls the fatal callback, and ends the program: by abort() if code is kAbort and
// no callback was set, otherwise by exit(code).
[[noreturn, gnu::format(printf, 2, 3)]] void fatal(int code, const char* format, ...);

[[nodiscard]] bool debug_enabled();

}  // namespace spate::libevent
