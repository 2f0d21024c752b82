// What the library calls to start threads and to wait for them (calls.txt).
#pragma once

namespace spate::sim {

// futex(2) with its arguments, as std::latch makes it: a negated errno, or 0.
long futex(const long (&arguments)[6]);

}  // namespace spate::sim
