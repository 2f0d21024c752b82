// libevent's headers of DNS; see event_api.h.
#pragma once

#include "compat/libevent/event_api.h"

#pragma GCC visibility push(default)
#include <event2/dns.h>
#include <event2/dns_compat.h>
#include <event2/dns_struct.h>
#pragma GCC visibility pop
