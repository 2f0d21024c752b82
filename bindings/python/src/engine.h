// Native bases of asyncio's transports of datagrams and pipes. A class of Python derives from one
// of them and from asyncio's class. The hot methods are here, and meet the usual case. Everything
// else is asyncio's, so that its meaning is that of the running Python. The attributes that both
// use are fields here.
#pragma once

#include "core.h"
#include "derived.h"

namespace pyspate {

struct Engine {
  // Attributes of asyncio's classes. They may be null.
  PyObject* loop;
  PyObject* protocol;
  PyObject* file;  // The socket or pipe, which owns the descriptor.
  PyObject* descriptor;
  PyObject* buffer;  // The data that waits for the kernel.
  int lost;
  char is_closing;
  // Attributes of datagram transports:
  char is_paused;
  PyObject* extra;    // The extra info.
  PyObject* address;  // The address of all datagrams, or None.
  // Not attributes:
  State* state;
  int family;  // The socket's domain; 0: not known yet.
  unsigned single_reads;
  bool reads_bursts;
};

inline Engine* engine_of(PyObject* self) { return native_of<Engine>(self); }

// Returns the loop unless it is closed; otherwise null, without an exception.
Core* loop_of(Engine* engine);
// Returns the loop if native code may serve the transport; null, without an exception, if asyncio's
// code has to. It always has to in debug mode.
Core* usual_core(Engine* engine);
// Returns the descriptor; -1, without an exception, if the engine has none.
int descriptor_of(Engine* engine);
// Whether data waits for the kernel.
bool has_buffer(Engine* engine);
// Calls _fatal_error() with the current exception.
PyObject* fail_fatally(PyObject* self, const char* message);

// Makes a type of Engines, which derives from `base`, a class of asyncio.transports. The methods
// must outlive the type.
PyTypeObject* derive_engine(PyObject* module, const char* name, const char* base,
                            PyMethodDef* methods, const PyMemberDef* members);

}  // namespace pyspate
