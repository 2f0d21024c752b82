// The events of event_base_once(), which the library owns until they are called.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

struct OnceEvent {
  event ev;
  event_callback_fn callback;
  void* argument;
  OnceEvent* next;
  OnceEvent** previous;
};

// Frees those that were never called, when their base is freed. They must be stopped.
void release_once_events(OnceEvent* first);

}  // namespace spate::libevent
