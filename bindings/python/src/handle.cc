#include "handle.h"

#include "core.h"
#include "state.h"

namespace pyspate {
namespace {

Handle* of(PyObject* object) { return reinterpret_cast<Handle*>(object); }
int stored(const Handle* handle) { return handle->count == kTuple ? 1 : handle->count; }

Ref arguments_of(const Handle* handle) {
  if (handle->count == kTuple) return Ref::copy(handle->arguments[0]);
  Ref tuple(PyTuple_New(handle->count));
  for (int i = 0; tuple && i < handle->count; ++i) {
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(handle->arguments[i]));
  }
  return tuple;
}

bool set_arguments(Handle* handle, PyObject* const* arguments, Py_ssize_t size) {
  if (size <= 3) {
    for (Py_ssize_t i = 0; i < size; ++i) handle->arguments[i] = Py_NewRef(arguments[i]);
    handle->count = static_cast<std::int8_t>(size);
    return true;
  }
  PyObject* const tuple = PyTuple_New(size);
  if (tuple == nullptr) return false;
  for (Py_ssize_t i = 0; i < size; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(arguments[i]));
  handle->arguments[0] = tuple;
  handle->count = kTuple;
  return true;
}

Handle* allocate(State* state) {
  if (state->free_count == 0) return PyObject_GC_New(Handle, state->handle_type);
  Handle* const handle = state->free_handles[--state->free_count];
  PyObject_Init(as_object(handle), state->handle_type);
  return handle;
}

void handle_dealloc(PyObject* self) {
  Handle* const handle = of(self);
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (handle->weak != nullptr) PyObject_ClearWeakRefs(self);
  clear(handle);
  Py_XDECREF(handle->context);
  Py_XDECREF(handle->stack);
  Core* const core = handle->core;
  State* const state = core->state;
  if (state->free_count < State::kFreeHandles) {
    state->free_handles[state->free_count++] = handle;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(as_object(core));
  Py_DECREF(type);
}

int handle_traverse(PyObject* self, visitproc visit, void* arg) {
  Handle* const handle = of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(handle->core));
  Py_VISIT(handle->callback);
  Py_VISIT(handle->context);
  Py_VISIT(handle->stack);
  for (int i = 0; i < stored(handle); ++i) Py_VISIT(handle->arguments[i]);
  return 0;
}

// The core and the context break their cycles themselves.
int handle_clear(PyObject* self) {
  clear(of(self));
  Py_CLEAR(of(self)->stack);
  return 0;
}

PyObject* call_now(Handle* handle) {
  // The callback may cancel its own handle.
  const Ref callback = Ref::copy(handle->callback);
  if (handle->count == kTuple) {
    const Ref arguments = Ref::copy(handle->arguments[0]);
    return PyObject_Call(callback.get(), arguments.get(), nullptr);
  }
  PyObject* arguments[3];
  const int count = handle->count;
  for (int i = 0; i < count; ++i) arguments[i] = Py_NewRef(handle->arguments[i]);
  PyObject* const result = PyObject_Vectorcall(callback.get(), arguments, count, nullptr);
  for (int i = 0; i < count; ++i) Py_DECREF(arguments[i]);
  return result;
}

PyObject* handle_cancel(PyObject* self, PyObject*) {
  cancel(of(self));
  Py_RETURN_NONE;
}
PyObject* handle_cancelled(PyObject* self, PyObject*) {
  return PyBool_FromLong(of(self)->is_cancelled);
}
PyObject* handle_when(PyObject* self, PyObject*) { return PyFloat_FromDouble(of(self)->when); }
PyObject* handle_get_context(PyObject* self, PyObject*) { return Py_NewRef(of(self)->context); }
PyObject* handle_run(PyObject* self, PyObject*) {
  // A handle that has been called has no callback any more.
  const bool is_due = !of(self)->is_cancelled && of(self)->callback != nullptr;
  if (is_due && call(of(self)) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* handle_repr(PyObject* self) {
  Handle* const handle = of(self);
  const Ref arguments = handle->callback == nullptr ? Ref(PyTuple_New(0)) : arguments_of(handle);
  if (!arguments) return nullptr;
  return PyObject_CallFunctionObjArgs(handle->core->state->lookups.describe_handle, self,
                                      handle->callback == nullptr ? Py_None : handle->callback,
                                      arguments.get(), nullptr);
}

// Returns 1 if both mean the same call, 0 if not.
int equal(Handle* a, Handle* b) {
  if (a == b) return 1;
  if (!a->is_timer || !b->is_timer || a->when != b->when || a->is_cancelled != b->is_cancelled) {
    return 0;
  }
  if (a->callback == nullptr || b->callback == nullptr) return a->callback == b->callback;
  const int same = PyObject_RichCompareBool(a->callback, b->callback, Py_EQ);
  if (same <= 0) return same;
  const Ref x = arguments_of(a), y = arguments_of(b);
  return x && y ? PyObject_RichCompareBool(x.get(), y.get(), Py_EQ) : -1;
}

PyObject* handle_compare(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(self) != Py_TYPE(other)) Py_RETURN_NOTIMPLEMENTED;
  Handle* const a = of(self);
  Handle* const b = of(other);
  const bool is_equality = operation == Py_EQ || operation == Py_NE;
  if (!is_equality && !(a->is_timer && b->is_timer)) Py_RETURN_NOTIMPLEMENTED;
  if (operation == Py_LT) return PyBool_FromLong(a->when < b->when);
  if (operation == Py_GT) return PyBool_FromLong(a->when > b->when);
  const int same = equal(a, b);
  if (same < 0) return nullptr;
  if (operation == Py_LE) return PyBool_FromLong(a->when < b->when || same);
  if (operation == Py_GE) return PyBool_FromLong(a->when > b->when || same);
  return PyBool_FromLong(same == (operation == Py_EQ));
}

Py_hash_t handle_hash(PyObject* self) {
  if (!of(self)->is_timer) return _Py_HashPointer(self);
  const Ref when(PyFloat_FromDouble(of(self)->when));
  return when ? PyObject_Hash(when.get()) : -1;
}

// Answers as asyncio's own classes do, so that isinstance() holds.
PyObject* get_class(PyObject* self, void*) {
  const Lookups& lookups = of(self)->core->state->lookups;
  return Py_NewRef(of(self)->is_timer ? lookups.asyncio_timer : lookups.asyncio_handle);
}
PyObject* or_none(PyObject* object) { return Py_NewRef(object == nullptr ? Py_None : object); }
PyObject* get_callback(PyObject* self, void*) { return or_none(of(self)->callback); }
PyObject* get_arguments(PyObject* self, void*) {
  if (of(self)->callback == nullptr) Py_RETURN_NONE;
  return arguments_of(of(self)).release();
}
PyObject* get_cancelled(PyObject* self, void*) { return handle_cancelled(self, nullptr); }
PyObject* get_scheduled(PyObject* self, void*) { return PyBool_FromLong(of(self)->is_in_heap); }
PyObject* get_loop(PyObject* self, void*) { return Py_NewRef(as_object(of(self)->core)); }
PyObject* get_context(PyObject* self, void*) { return Py_NewRef(of(self)->context); }
PyObject* get_when(PyObject* self, void*) { return handle_when(self, nullptr); }
PyObject* get_stack(PyObject* self, void*) { return or_none(of(self)->stack); }

PyMethodDef methods[] = {{"cancel", handle_cancel, METH_NOARGS, nullptr},
                         {"cancelled", handle_cancelled, METH_NOARGS, nullptr},
                         {"when", handle_when, METH_NOARGS, nullptr},
                         {"get_context", handle_get_context, METH_NOARGS, nullptr},
                         {"_run", handle_run, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef attributes[] = {{"__class__", get_class, nullptr, nullptr, nullptr},
                            {"_callback", get_callback, nullptr, nullptr, nullptr},
                            {"_args", get_arguments, nullptr, nullptr, nullptr},
                            {"_cancelled", get_cancelled, nullptr, nullptr, nullptr},
                            {"_scheduled", get_scheduled, nullptr, nullptr, nullptr},
                            {"_loop", get_loop, nullptr, nullptr, nullptr},
                            {"_context", get_context, nullptr, nullptr, nullptr},
                            {"_when", get_when, nullptr, nullptr, nullptr},
                            {"_source_traceback", get_stack, nullptr, nullptr, nullptr},
                            {}};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Handle, weak), READONLY, nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_dealloc, as_slot(handle_dealloc)},
                       {Py_tp_traverse, as_slot(handle_traverse)},
                       {Py_tp_clear, as_slot(handle_clear)},
                       {Py_tp_repr, as_slot(handle_repr)},
                       {Py_tp_richcompare, as_slot(handle_compare)},
                       {Py_tp_hash, as_slot(handle_hash)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {Py_tp_members, members},
                       {}};
PyType_Spec spec = {"spate._core.Handle", sizeof(Handle), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyTypeObject* make_handle_type(PyObject* module) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

Handle* make_handle(Core* core, PyObject* const* call, Py_ssize_t size, PyObject* context) {
  Handle* const handle = allocate(core->state);
  if (handle == nullptr) return nullptr;
  handle->core = reinterpret_cast<Core*>(Py_NewRef(as_object(core)));
  handle->callback = Py_NewRef(call[0]);
  handle->stack = handle->weak = nullptr;
  handle->when = 0;
  handle->count = 0;
  handle->is_timer = handle->is_cancelled = handle->is_in_heap = false;
  const bool is_given = context != nullptr && context != Py_None;
  handle->context = is_given ? Py_NewRef(context) : PyContext_CopyCurrent();
  if (handle->context == nullptr || !set_arguments(handle, call + 1, size - 1)) {
    Py_DECREF(as_object(handle));
    return nullptr;
  }
  if (core->is_debug) {
    handle->stack = PyObject_CallNoArgs(core->state->lookups.capture_stack);
    if (handle->stack == nullptr) PyErr_Clear();
  }
  PyObject_GC_Track(as_object(handle));
  return handle;
}

int call(Handle* handle) {
  const Ref context = Ref::copy(handle->context);
  const Ref self = Ref::copy(as_object(handle));
  if (PyContext_Enter(context.get()) == 0) {
    const Ref result(call_now(handle));
    if (result) {
      PyContext_Exit(context.get());
      return 0;
    }
    const ExceptionKeeper exception;
    PyContext_Exit(context.get());
  }
  if (is_exit()) return -1;
  return report(handle->core, nullptr, self.get(), nullptr);
}

void clear(Handle* handle) {
  PyObject* const callback = std::exchange(handle->callback, nullptr);
  const int count = stored(handle);
  PyObject* arguments[3];
  for (int i = 0; i < count; ++i) arguments[i] = handle->arguments[i];
  handle->count = 0;
  Py_XDECREF(callback);
  for (int i = 0; i < count; ++i) Py_DECREF(arguments[i]);
}

void cancel(Handle* handle) {
  if (handle->is_cancelled) return;
  handle->is_cancelled = true;
  const Ref self = Ref::copy(as_object(handle));
  if (!handle->core->is_debug) clear(handle);
  if (handle->is_in_heap) note_cancelled_timer(handle->core);
}

}  // namespace pyspate
