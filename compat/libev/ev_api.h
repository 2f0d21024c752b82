// libev's header as this library implements it: without the names of version 3, which would make
// `ev_loop` a function, and with every declaration exported.
#pragma once

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define EV_COMPAT3 0
#pragma GCC visibility push(default)
#include <ev.h>
#pragma GCC visibility pop
