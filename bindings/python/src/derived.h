// Native types that derive from asyncio's classes of transports, which keep their attributes in
// slots. An object is its head, the slots of its base, and the native part.
#pragma once

#include <atomic>
#include <cstddef>

#include "python.h"

namespace pyspate {

struct Derived {
  const char* name;
  const char* base;            // A class of asyncio.transports.
  std::size_t size;            // Bytes of the native part.
  const PyType_Slot* slots;    // Ends with an empty one, as do the members.
  const PyMemberDef* members;  // Their offsets are those in the native part.
};

// Bytes between an object's head and its native part: the same for all derived types.
extern std::atomic<std::size_t> native_offset;

template <class Native>
Native* native_of(PyObject* self) {
  return reinterpret_cast<Native*>(reinterpret_cast<char*>(self) +
                                   native_offset.load(std::memory_order_relaxed));
}

PyTypeObject* derive(PyObject* module, const Derived& derived);
// Visits and clears the slots of the base.
int visit_base(PyObject* self, visitproc visit, void* arg);
void clear_base(PyObject* self);

}  // namespace pyspate
