// libevent's header of bufferevents on OpenSSL; see event_api.h.
#pragma once

#include "compat/libevent/bufferevent_api.h"

#pragma GCC visibility push(default)
#include <event2/bufferevent_ssl.h>
#pragma GCC visibility pop
