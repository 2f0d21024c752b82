// Threads that sleep in the kernel. macOS and BSD have no common way to see that a thread does.
#pragma once

#include <unistd.h>

#include <chrono>
#include <thread>

namespace spate::testing {

inline int this_thread() { return ::getpid(); }

// Waits long enough for most threads to sleep. A test passes also if the thread does not yet.
inline void await_sleep(int) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

}  // namespace spate::testing
