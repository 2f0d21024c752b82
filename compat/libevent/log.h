// What the library has to say, to the program's log callback or to stderr, and how it ends the
// program when it cannot go on.
//
// Semantics: event2/event.h ("Log severities", event_set_log_callback, event_set_fatal_callback,
// event_enable_debug_logging); the form of the lines and the order of the calls: probes.
//
// The callbacks are globals, as in libevent: they are set before other threads exist. A callback
// may throw or jump past everything here, so nothing in this file owns anything while one runs.
#pragma once

namespace spate::libevent {

enum class Severity { debug, message, warning, error };

// What libevent hands a fatal callback when it would abort, not exit.
inline constexpr int kAbort = static_cast<int>(0xdeaddeadU);

// One line, without its end; cut at 1,023 characters. Debug lines are written only while the
// program has asked for them, so a call on a hot path first asks debug_enabled().
[[gnu::format(printf, 2, 3)]] void log(Severity severity, const char* format, ...);

// A warning; warn() adds ": " and what errno says.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void warnx(const char* format, ...);

// An error, then the fatal callback; then the end of the program: abort() if code is kAbort and no
// callback was set, else exit(code).
[[noreturn, gnu::format(printf, 2, 3)]] void fatal(int code, const char* format, ...);

bool debug_enabled();

}  // namespace spate::libevent
