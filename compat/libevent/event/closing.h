// Events of descriptors that the library closes itself.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// Called just before the descriptor of an event that is not pending is closed, before the loop
// waits again. So no call to the kernel is needed, and no other thread can get the number before.
void forget_descriptor(event& ev);

}  // namespace spate::libevent
