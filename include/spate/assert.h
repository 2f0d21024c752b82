// SPATE_ASSERT: the caller's mistake, and nothing else.
//
// What the world does wrong is returned as an error; what the caller does wrong (a watcher moved or
// re-aimed while it is active, a loop used from a second thread while it runs) ends here. On in
// debug builds and, with SPATE_HARDENED, in every build: a trap, without a message, because a
// library does not print.
#pragma once

#if defined(SPATE_HARDENED) || !defined(NDEBUG)
#define SPATE_ASSERT(condition) ((condition) ? static_cast<void>(0) : __builtin_trap())
#else
#define SPATE_ASSERT(condition) static_cast<void>(0)
#endif
