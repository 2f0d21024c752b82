// libevent's headers of remote calls, as event_api.h has those of events.
#pragma once

#include "compat/libevent/http_api.h"

#pragma GCC visibility push(default)
#include <event2/rpc.h>
#include <event2/rpc_struct.h>
#pragma GCC visibility pop
#undef INPUT  // The old names of EVRPC_INPUT and EVRPC_OUTPUT.
#undef OUTPUT
