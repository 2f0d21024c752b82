// Events of descriptors that the library itself closes.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// The descriptor of the event, which is not pending any more, is closed next, before the loop waits
// again: the kernel need not be told, and no other thread can get the number while it is.
void forget_descriptor(event& ev);

}  // namespace spate::libevent
