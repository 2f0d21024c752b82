#include "core.h"

#include "transport.h"

namespace pyspate {
namespace {

bool create_loop(Core* core) {
  spate_loop_options options;
  spate_loop_options_init(&options, sizeof options);
  options.before_wait = before_wait;
  options.after_wait = after_wait;
  options.data = core;
  const int code = spate_loop_create(&core->loop, &options);
  if (code < 0) {
    raise_errno(-code);
    return false;
  }
  spate_loop_ref(core->loop);
  return true;
}

PyObject* core_new(PyTypeObject* type, PyObject*, PyObject*) {
  State* const state = state_of_type(type);
  if (state == nullptr) return nullptr;
  const Ref time(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), state->names.time));
  if (!time) return nullptr;
  Ref self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  Core* const core = core_of(self.get());
  core->state = state;
  ++state->owners;
  core->has_own_clock = time.get() != state->lookups.core_time;
  core->forks = state->forks;
  core->read_buffer = static_cast<char*>(PyMem_RawMalloc(kReadBuffer));
  if (core->read_buffer == nullptr) return PyErr_NoMemory();
  return create_loop(core) ? self.release() : nullptr;
}

void drop(Handle*& handle) {
  Handle* const before = std::exchange(handle, nullptr);
  if (before == nullptr) return;
  clear(before);
  Py_DECREF(as_object(before));
}

void drop_queues(Core* core) {
  while (core->ready.size() > 0) {
    Handle* handle = core->ready.pop();
    drop(handle);
  }
  while (core->timers.size() > 0) {
    Handle* handle = core->timers.take_last().handle;
    handle->is_in_heap = false;
    drop(handle);
  }
  core->cancelled_timers = 0;
}

void drop_watches(Core* core) {
  for (std::size_t i = 0; i < core->watches.size(); ++i) {
    Watch* const watch = core->watches[i];
    if (watch == nullptr) continue;
    if (core->loop != nullptr) spate_io_stop(&watch->io);
    drop(watch->reader);
    drop(watch->writer);
    Py_CLEAR(watch->file);
  }
}

int core_traverse(PyObject* self, visitproc visit, void* arg) {
  Core* const core = core_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(core->task_factory);
  Py_VISIT(core->slow_function);
  for (std::size_t i = 0; i < core->ready.size(); ++i) Py_VISIT(as_object(core->ready[i]));
  for (const Timed& timed : core->timers) Py_VISIT(as_object(timed.handle));
  for (Watch* watch : core->watches) {
    if (watch == nullptr) continue;
    Py_VISIT(watch->file);
    Py_VISIT(as_object(watch->reader));
    Py_VISIT(as_object(watch->writer));
  }
  return visit_held(core, visit, arg);
}

int core_clear(PyObject* self) {
  drop_everything(core_of(self));
  return 0;
}

void core_dealloc(PyObject* self) {
  Core* const core = core_of(self);
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  core->is_closed = true;
  drop_everything(core);
  for (Watch* watch : core->watches) PyMem_RawFree(watch);
  core->ready.free();
  core->timers.free();
  core->expired.free();
  core->watches.free();
  core->written.free();
  core->transports.free();
  core->addresses.free();
  PyMem_RawFree(core->read_buffer);
  if (core->state != nullptr) release(core->state);
  type->tp_free(self);
  Py_DECREF(type);
}

// Notices a clock that is put in the place of time(), as tests do.
int core_setattro(PyObject* self, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(self, name, value);
  if (result == 0 && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "time") == 0) {
    core_of(self)->is_patched = value != nullptr;
  }
  return result;
}

PyObject* call_soon(PyObject* self, PyObject* const* arguments, Py_ssize_t size, PyObject* names,
                    const char* method, bool is_own_thread) {
  Core* const core = core_of(self);
  PyObject* context;
  if (size < 1) {
    PyErr_Format(PyExc_TypeError, "%s() needs a callback", method);
    return nullptr;
  }
  if (!check_open(core) || !parse_context(arguments, size, names, &context)) return nullptr;
  if (core->is_debug && !check_debug(core, arguments[0], method, is_own_thread)) return nullptr;
  if (!core->ready.reserve()) return nullptr;
  Handle* const handle = make_handle(core, arguments, size, context);
  if (handle == nullptr || !core->ready.push(handle)) return nullptr;
  return Py_NewRef(as_object(handle));
}

PyObject* core_call_soon(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                         PyObject* names) {
  return call_soon(self, arguments, size, names, "call_soon", true);
}

PyObject* core_call_soon_threadsafe(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                                    PyObject* names) {
  Core* const core = core_of(self);
  PyObject* const handle = call_soon(self, arguments, size, names, "call_soon_threadsafe", false);
  // Python's lock protects the flag: the loop sets it before it gives up the lock.
  if (handle != nullptr && std::exchange(core->is_asleep, false)) spate_wake(core->loop);
  return handle;
}

// Makes a Task, as BaseEventLoop.create_task() does. That method handles the rare cases.
PyObject* core_create_task(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                           PyObject* names) {
  Core* const core = core_of(self);
  State* const state = core->state;
  if (!check_open(core)) return nullptr;
  const bool is_usual = size == 1 && core->task_factory == nullptr && !core->is_debug;
  if (is_usual && names == nullptr) {
    PyObject* const call[] = {arguments[0], self};
    return PyObject_Vectorcall(state->lookups.task, call, 1, state->loop_keyword);
  }
  if (is_usual && PyTuple_GET_SIZE(names) == 1 && PyTuple_GET_ITEM(names, 0) == state->names.name) {
    PyObject* const call[] = {arguments[0], self, arguments[1]};
    return PyObject_Vectorcall(state->lookups.task, call, 1, state->task_keywords);
  }
  Array<PyObject*> call{};
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  PyObject* result = nullptr;
  if (call.push(self)) {
    bool is_pushed = true;
    for (Py_ssize_t i = 0; i < size + keywords && is_pushed; ++i)
      is_pushed = call.push(arguments[i]);
    if (is_pushed) {
      result = PyObject_Vectorcall(state->lookups.create_task, call.begin(), size + 1, names);
    }
  }
  call.free();
  return result;
}

PyObject* core_stop(PyObject* self, PyObject*) {
  core_of(self)->is_stopping = true;
  Py_RETURN_NONE;
}

int to_bool(PyObject* value, bool* result) {
  const int truth = value == nullptr ? 0 : PyObject_IsTrue(value);
  if (truth >= 0) *result = truth != 0;
  return truth < 0 ? -1 : 0;
}

PyObject* get_stopping(PyObject* self, void*) {
  return PyBool_FromLong(core_of(self)->is_stopping);
}
int set_stopping(PyObject* self, PyObject* value, void*) {
  return to_bool(value, &core_of(self)->is_stopping);
}
PyObject* get_debug(PyObject* self, void*) { return PyBool_FromLong(core_of(self)->is_debug); }
int set_debug(PyObject* self, PyObject* value, void*) {
  return to_bool(value, &core_of(self)->is_debug);
}
PyObject* get_closed(PyObject* self, void*) { return PyBool_FromLong(core_of(self)->is_closed); }
int set_closed(PyObject* self, PyObject* value, void*) {
  const int result = to_bool(value, &core_of(self)->is_closed);
  if (core_of(self)->is_closed) drop_everything(core_of(self));
  return result;
}
PyObject* get_task_factory(PyObject* self, void*) {
  PyObject* const factory = core_of(self)->task_factory;
  return Py_NewRef(factory == nullptr ? Py_None : factory);
}
int set_task_factory(PyObject* self, PyObject* value, void*) {
  const bool is_none = value == nullptr || value == Py_None;
  const Ref before(
      std::exchange(core_of(self)->task_factory, is_none ? nullptr : Py_NewRef(value)));
  return 0;
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef methods[] = {
    {"call_soon", as_method(core_call_soon), kFast, nullptr},
    {"call_soon_threadsafe", as_method(core_call_soon_threadsafe), kFast, nullptr},
    {"call_later", as_method(core_call_later), kFast, nullptr},
    {"call_at", as_method(core_call_at), kFast, nullptr},
    {"time", core_time, METH_NOARGS, nullptr},
    {"stop", core_stop, METH_NOARGS, nullptr},
    {"create_future", core_create_future, METH_NOARGS, nullptr},
    {"create_task", as_method(core_create_task), kFast, nullptr},
    {"_add_reader", as_method(core_add_reader), kFast, nullptr},
    {"_add_writer", as_method(core_add_writer), kFast, nullptr},
    {"_remove_reader", core_remove_reader, METH_O, nullptr},
    {"_remove_writer", core_remove_writer, METH_O, nullptr},
    {"_accept", core_accept, METH_VARARGS, nullptr},
    {"_check_no_transport", core_check_no_transport, METH_O, nullptr},
    {"_socket_receive", core_socket_receive, METH_VARARGS, nullptr},
    {"_socket_receive_into", core_socket_receive_into, METH_VARARGS, nullptr},
    {"_socket_send", core_socket_send, METH_VARARGS, nullptr},
    {"_socket_connect", core_socket_connect, METH_VARARGS, nullptr},
    {"_connect", core_connect, METH_VARARGS, nullptr},
    {"_make_connected_transport", core_make_connected_transport, METH_VARARGS, nullptr},
    {"_metrics", core_metrics, METH_NOARGS, nullptr},
    {"set_slow_callback", core_set_slow_callback, METH_VARARGS, nullptr},
    {"_run_once", core_run_once, METH_NOARGS, nullptr},
    {}};
PyGetSetDef attributes[] = {{"_stopping", get_stopping, set_stopping, nullptr, nullptr},
                            {"_debug", get_debug, set_debug, nullptr, nullptr},
                            {"_closed", get_closed, set_closed, nullptr, nullptr},
                            {"_task_factory", get_task_factory, set_task_factory, nullptr, nullptr},
                            {}};
PyType_Slot slots[] = {{Py_tp_new, as_slot(core_new)},
                       {Py_tp_dealloc, as_slot(core_dealloc)},
                       {Py_tp_traverse, as_slot(core_traverse)},
                       {Py_tp_clear, as_slot(core_clear)},
                       {Py_tp_setattro, as_slot(core_setattro)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {}};
PyType_Spec spec = {"spate._core.Core", sizeof(Core), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

PyTypeObject* make_core_type(PyObject* module) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

PyObject* core_create_future(PyObject* self, PyObject*) {
  State* const state = core_of(self)->state;
  return PyObject_Vectorcall(state->lookups.future, &self, 0, state->loop_keyword);
}

bool check_open(Core* core) {
  if (!core->is_closed && core->loop != nullptr) return true;
  PyErr_SetString(PyExc_RuntimeError, "Event loop is closed");
  return false;
}

bool check_debug(Core* core, PyObject* callback, const char* method, bool of_thread) {
  if (of_thread) {
    const Ref result(PyObject_CallMethod(as_object(core), "_check_thread", nullptr));
    if (!result) return false;
  }
  const Ref result(PyObject_CallMethod(as_object(core), "_check_callback", "Os", callback, method));
  return static_cast<bool>(result);
}

bool parse_context(PyObject* const* arguments, Py_ssize_t size, PyObject* names,
                   PyObject** context) {
  *context = nullptr;
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "context") != 0) {
      PyErr_Format(PyExc_TypeError, "unexpected keyword argument %R", name);
      return false;
    }
    *context = arguments[size + i];
  }
  return true;
}

bool notice_fork(Core* core) {
  if (core->forks == core->state->forks) return true;
  const int code = spate_loop_after_fork(core->loop);
  if (code < 0) {
    raise_errno(-code);
    return false;
  }
  core->forks = core->state->forks;
  return true;
}

int report(Core* core, const char* message, PyObject* handle, PyObject* transport) {
  const Ref exception = take_exception();
  const Ref text(message == nullptr ? Py_NewRef(Py_None) : PyUnicode_FromString(message));
  Ref done;
  if (text && exception) {
    done = Ref(PyObject_CallFunctionObjArgs(
        core->state->lookups.report, as_object(core), exception.get(), text.get(),
        handle == nullptr ? Py_None : handle, transport == nullptr ? Py_None : transport, nullptr));
  }
  if (done || !PyErr_Occurred()) return 0;
  if (is_exit()) return -1;
  PyErr_WriteUnraisable(as_object(core));
  return 0;
}

void drop_everything(Core* core) {
  const ExceptionKeeper exception;
  drop_queues(core);
  drop_watches(core);
  release_held(core);
  Py_CLEAR(core->task_factory);
  Py_CLEAR(core->slow_function);
  if (!core->is_closed) return;
  spate_loop* const loop = std::exchange(core->loop, nullptr);
  if (loop != nullptr) spate_loop_destroy(loop);
}

}  // namespace pyspate
