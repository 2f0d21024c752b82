// Copies of the library in one process: each is linked into another shared object, and has its own
// table of signals. The handlers of a signal form a chain: the copy that began to watch it last has
// the process's handler. That handler calls the one that it found, if it is another copy's.
//
// A copy recognizes another copy's handler by its sa_mask, which leaves certain real-time signals
// unblocked. It may send requests to that handler: to read the handler that it found, and to
// replace it when a copy leaves the chain.
#pragma once

#include "sys/signal.h"

namespace spate {

using SignalHandler = void (*)(int signum, siginfo_t* info, void* context);

// The action of a handler, with the mark of a copy.
struct sigaction action_of_copy(SignalHandler handler);
// Returns whether the handler is a copy's, perhaps our own.
bool is_copy(const struct sigaction& action);

// A request of one copy to another. The handler receives it in place of a signal.
struct CopyRequest {
  enum class What : unsigned char { read_found, replace_found };

  What what;
  bool is_done = false;  // Not if another thread is using the table: ask again later.
  struct sigaction found{};
};

// Calls the handler of a copy. False if the copy is busy.
bool ask_copy(const struct sigaction& copy, int signum, CopyRequest& request);
// In a handler: the request, or nullptr if this is a signal.
CopyRequest* request_in(const siginfo_t* info, void* context);

}  // namespace spate
