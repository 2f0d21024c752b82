// libevent's headers of buffers; see event_api.h.
#pragma once

#include "compat/libevent/event_api.h"

#pragma GCC visibility push(default)
#include <event2/buffer.h>
extern "C" {  // Which this one forgets.
#include <event2/buffer_compat.h>
}
#include <event2/tag.h>
#pragma GCC visibility pop
