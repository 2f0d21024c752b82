// libevent's headers of HTTP; see event_api.h.
#pragma once

#include "compat/libevent/bufferevent_api.h"

#pragma GCC visibility push(default)
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
extern "C" {
#include <event2/http_compat.h>
}
#pragma GCC visibility pop
