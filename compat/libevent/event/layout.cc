// Checks the layout of struct event that event_layout.h relies on: the header's, as measured on the
// installed libraries, and that spate's nodes do not overlap the program's members.
#include "compat/libevent/event/event_layout.h"

namespace spate::libevent {

static_assert(sizeof(event) == 128 && alignof(event) == 8 && sizeof(event_callback) == 40);
static_assert(offsetof(event_callback, evcb_active_next) == 0);
static_assert(offsetof(event_callback, evcb_flags) == 16);
static_assert(offsetof(event_callback, evcb_pri) == 18);
static_assert(offsetof(event_callback, evcb_closure) == 19);
static_assert(offsetof(event_callback, evcb_cb_union) == 24);
static_assert(offsetof(event_callback, evcb_arg) == 32);
static_assert(offsetof(event, ev_timeout_pos) == 40);
static_assert(offsetof(event, ev_fd) == 56);
static_assert(offsetof(event, ev_base) == 64);
static_assert(offsetof(event, ev_) == 72);
static_assert(offsetof(event, ev_events) == 104);
static_assert(offsetof(event, ev_res) == 106);
static_assert(offsetof(event, ev_timeout) == 112);

static_assert(kFdNode + offsetof(Node, context) == offsetof(event, ev_fd));
static_assert(kFdNode + offsetof(Node, callback) == offsetof(event, ev_base));
static_assert(kFdNode + sizeof(FdNode) == kTimerNode);
static_assert(kTimerNode + offsetof(Node, context) == offsetof(event, ev_events));
static_assert(kTimerNode + offsetof(TimerNode, repeat) == sizeof(event));
static_assert(kLinks == offsetof(event, ev_) && kLinks + sizeof(Links) == kTimerNode);
static_assert(offsetof(Node, priority) == 8 && offsetof(Node, extra) == 12);

}  // namespace spate::libevent
