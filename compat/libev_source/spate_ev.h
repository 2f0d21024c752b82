/* libev's header for programs that carry spate's libev in source form, spate_ev.cc: to be included
   in place of ev.h, by C and by C++, after the program's own EV_COMMON.

   It includes the ev.h of libev 4.33, which the program has or its system. One setting of ev(3),
   "PREPROCESSOR SYMBOLS/MACROS", may differ: EV_COMMON, which must not be empty. All others must
   have their defaults. spate_ev.cc must be compiled with an EV_COMMON of the same layout, as
   both use the same structs. Watchers are as large as libev's, unless EV_COMMON begins with an
   int: then they are 8 bytes larger. */
#ifndef SPATE_EV_H
#define SPATE_EV_H

/* The loop keeps four private bytes in each watcher. */
#define EV_DECL_PRIORITY \
  int priority;          \
  unsigned int spate_own;

#include <ev.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the loop that has watchers for the signal, 0 if none has: ev_signal_start() on any
   other loop aborts. Any thread. */
struct ev_loop* spate_ev_signal_loop(int signum);

#ifdef __cplusplus
}
#endif

#endif
