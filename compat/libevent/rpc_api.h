// libevent's headers of remote calls; see event_api.h.
#pragma once

#include "compat/libevent/http_api.h"

#pragma GCC visibility push(default)
#include <event2/rpc.h>
#include <event2/rpc_struct.h>
#pragma GCC visibility pop
#undef INPUT  // The old names of EVRPC_INPUT and EVRPC_OUTPUT.
#undef OUTPUT
