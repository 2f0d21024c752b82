// libevent's own headers, which declare the exports of this library. Everything else in it is
// hidden.
#pragma once

#pragma GCC visibility push(default)
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <event2/util.h>
#pragma GCC visibility pop
