// Checks the parts of a program's watchers that core uses as nodes. The members of EV_COMMON
// overlap the parts of a node that core does not touch: `context`, and the room after it.
#include <cstddef>

#include "compat/libev/ev_api.h"
#include "spate/layer/node.h"

namespace {

using spate::FdNode;
using spate::Node;
using spate::TimerNode;

static_assert(EV_MINPRI == spate::kPriorityMin && EV_MAXPRI == spate::kPriorityMax);
static_assert(offsetof(ev_watcher, active) == offsetof(Node, active));
static_assert(offsetof(ev_watcher, pending) == offsetof(Node, pending));
static_assert(offsetof(ev_watcher, priority) == offsetof(Node, priority));
static_assert(offsetof(ev_watcher, cb) == offsetof(Node, callback));
static_assert(sizeof(ev_watcher) == sizeof(Node));
static_assert(sizeof(ev_io) == sizeof(FdNode) && offsetof(ev_io, next) == offsetof(FdNode, next));
static_assert(offsetof(ev_io, fd) == offsetof(FdNode, fd));
static_assert(offsetof(ev_io, events) == offsetof(FdNode, events));
static_assert(sizeof(ev_timer) == sizeof(TimerNode));
static_assert(offsetof(ev_timer, at) == offsetof(TimerNode, deadline));
static_assert(sizeof(ev_timer::at) == sizeof(TimerNode::deadline));

static_assert(EV_READ == static_cast<int>(spate::Events::read));
static_assert(EV_WRITE == static_cast<int>(spate::Events::write));
static_assert(EV__IOFDSET == spate::kFdIsNew);

}  // namespace
