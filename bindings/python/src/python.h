// Python's C interface, and owners of its references. Unless its comment says otherwise, a function
// that fails returns null, false or -1 with Python's exception set.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <utility>

namespace pyspate {

// Owns one reference, or none.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* const before = std::exchange(object_, other.release());
    Py_XDECREF(before);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref copy(PyObject* borrowed) { return Ref(Py_XNewRef(borrowed)); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Takes the current exception with its traceback, or null.
inline Ref take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
  return Ref(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return Ref();
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return Ref(value);
#endif
}

// Sets the exception again. If it is null, clears the current one.
inline void raise(Ref exception) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* const value = exception.release();
  if (value == nullptr) {
    PyErr_Clear();
  } else {
    PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value,
                  PyException_GetTraceback(value));
  }
#endif
}

// Returns whether the current exception must leave the loop.
inline bool is_exit() {
  return PyErr_ExceptionMatches(PyExc_SystemExit) ||
         PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
}

inline void raise_errno(int number) {
  PyErr_Clear();
  errno = number;
  PyErr_SetFromErrno(PyExc_OSError);
}

// Deallocates an object of a type whose tp_clear releases all that it owns.
template <int (*clear)(PyObject*)>
void dealloc_cleared(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

template <class Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
template <class Function>
void* as_slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Saves the current exception while other Python code runs.
class ExceptionKeeper {
 public:
  ExceptionKeeper() : exception_(take_exception()) {}
  ~ExceptionKeeper() { raise(std::move(exception_)); }
  ExceptionKeeper(const ExceptionKeeper&) = delete;

 private:
  Ref exception_;
};

}  // namespace pyspate
