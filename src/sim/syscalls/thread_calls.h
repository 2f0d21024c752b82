// The functions with which the library starts threads and waits for them (calls.txt).
#pragma once

namespace spate::sim {

// futex(2) as called by std::latch. Returns 0, or a negated errno.
long futex(const long (&arguments)[6]);

}  // namespace spate::sim
