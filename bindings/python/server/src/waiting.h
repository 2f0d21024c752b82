// Waiting: the awaitable that receive() and send() return. It tries its step, and waits for a
// future while the step cannot be done.
#pragma once

#include <cstddef>

#include "state.h"

namespace spate_server {

struct Waiting;
// Returns the result; null without an exception if it has to wait.
using Step = PyObject* (*)(Waiting* waiting);

struct Waiting {
  PyObject_HEAD
  const State* state;
  PyObject* owner;     // A Cycle or a Socket.
  PyObject* loop;      // Borrowed from the owner's server, which the owner keeps.
  PyObject** future;   // Inside of the owner: the future that all of its kind wait for.
  PyObject* iterator;  // Iterates the future.
  PyObject* data;      // Belongs to the step.
  std::size_t offset;
  Step step;
  PyObject* result;
};

extern PyType_Spec waiting_spec;
extern PyType_Spec done_spec;  // Done: an awaitable of None. It has no state, so one is enough.

// Makes an awaitable, and tries its step at once. `data` may be null.
PyObject* wait_for(const State* state, PyObject* owner, PyObject* loop, PyObject** future,
                   Step step, PyObject* data);
// Returns an awaitable of a result, which it takes over; null if the result is null.
PyObject* ready(const State* state, PyObject* owner, PyObject* result);
// Completes a future that something may wait for, and clears it.
void wake(const State* state, PyObject** future);

}  // namespace spate_server
