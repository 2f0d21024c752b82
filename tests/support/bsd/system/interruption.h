// The interruption of a thread that has closed an io_uring, which these systems do not have.
#pragma once

namespace spate::testing {

inline void await_interruption() {}

}  // namespace spate::testing
