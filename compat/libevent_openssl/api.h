// libevent's header of bufferevents on OpenSSL, as event_api.h has those of events.
#pragma once

#include "compat/libevent/bufferevent_api.h"

#pragma GCC visibility push(default)
#include <event2/bufferevent_ssl.h>
#pragma GCC visibility pop
