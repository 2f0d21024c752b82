// Threads that sleep in the kernel, as Linux's proc(5) shows them.
#pragma once

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace spate::testing {

inline int this_thread() { return ::gettid(); }

// Waits until a thread of any process, by its ID, sleeps in the kernel and has no pending signal.
inline void await_sleep(int thread) {
  const std::string process = "/proc/" + std::to_string(thread) + "/status";
  for (;;) {
    std::ifstream file(process);
    const std::string status((std::istreambuf_iterator<char>(file)), {});
    if (status.empty() || (status.find("State:\tS") != std::string::npos &&
                           status.find("ShdPnd:\t0000000000000000") != std::string::npos)) {
      return;
    }
    std::this_thread::yield();
  }
}

}  // namespace spate::testing
