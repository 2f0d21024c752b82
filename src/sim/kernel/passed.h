// Descriptors that are sent with a message (SCM_RIGHTS), from when it was sent until it is received
// or dropped.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <vector>

#include "sim/kernel/file.h"
#include "sim/kernel/message.h"

namespace spate::sim {

using Passed = std::vector<std::shared_ptr<File>>;

// Those that go with `message`. 0, or a negated errno: EBADF, EINVAL for more than the kernel
// carries or for something else.
long take_passed(const msghdr& message, Passed& passed);
// Opens them for the host whose code runs, as far as there is room and a limit allows; what is left
// is closed, and the receiver told by MSG_CTRUNC.
void open_passed(const Passed& passed, Control& control);

}  // namespace spate::sim
