// Descriptors that are sent with a message (SCM_RIGHTS), until it is received or dropped.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <vector>

#include "sim/kernel/file.h"
#include "sim/kernel/message.h"

namespace spate::sim {

using Passed = std::vector<std::shared_ptr<File>>;

// Takes the descriptors of `message`. Returns 0, or a negated errno: EBADF, EINVAL for more than
// the kernel allows or for other control messages.
long take_passed(const msghdr& message, Passed& passed);
// Opens them for the running host, within room and limit. The rest is closed, and MSG_CTRUNC is
// set.
void open_passed(const Passed& passed, Control& control);

}  // namespace spate::sim
