// Debug mode: a table of all events that are set up, and the end of the program for one that is
// used without being in it, or set up again while it is added.
//
// Semantics: event2/event.h (event_enable_debug_mode, event_debug_unassign); probed: the checks of
// each function, and that the program ends by abort().
#pragma once

#include <atomic>

#include "compat/libevent/event_api.h"

namespace spate::libevent {

namespace debug {
extern constinit bool is_on;
extern constinit std::atomic<bool> is_too_late;  // An event or a base exists.

void note_set_up(const event* ev);  // Called only while debug mode is on, like all functions below.
void note_torn_down(const event* ev);
void note_added(const event* ev, bool added);
void check_set_up(const event* ev, const char* function);
void check_not_added(const event* ev, const char* function);
void check_non_blocking(int fd);
void shut_down();
}  // namespace debug

}  // namespace spate::libevent
