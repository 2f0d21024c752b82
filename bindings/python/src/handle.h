// A pending call: the handle that call_soon() and similar functions return.
#pragma once

#include "python.h"

#include <cstdint>

namespace pyspate {

struct Core;

struct Handle {
  PyObject_HEAD Core* core;  // A strong reference.
  PyObject* callback;
  PyObject* context;
  PyObject* arguments[3];  // Or a tuple of more arguments.
  PyObject* stack;         // Where it was created, in debug mode.
  PyObject* weak;
  double when;
  std::int8_t count;  // The number of arguments, or kTuple.
  bool is_timer;
  bool is_cancelled;
  bool is_in_heap;
};

inline constexpr std::int8_t kTuple = 4;

inline PyObject* as_object(Handle* handle) { return reinterpret_cast<PyObject*>(handle); }

// Returns a new handle. `context` may be null or None, which means a copy of the current one.
Handle* make_handle(Core* core, PyObject* const* call, Py_ssize_t size, PyObject* context);
// Calls it in its context. Reports an exception to the loop. Returns -1 with the exception set if
// it ends the run, else 0.
int call(Handle* handle);
// Clears the callback and the arguments.
void clear(Handle* handle);
void cancel(Handle* handle);

}  // namespace pyspate
