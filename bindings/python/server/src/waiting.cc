#include "waiting.h"

namespace spate_server {
namespace {

Waiting* waiting_of(PyObject* self) { return reinterpret_cast<Waiting*>(self); }

bool begin_wait(Waiting* waiting) {
  if (*waiting->future == nullptr) {
    *waiting->future = PyObject_CallMethodNoArgs(waiting->loop,
                                                 (*waiting->state)[Name::create_future]);
    if (*waiting->future == nullptr) return false;
  }
  PyObject* const future = *waiting->future;
  waiting->iterator = Py_TYPE(future)->tp_as_async->am_await(future);
  return waiting->iterator != nullptr;
}

bool is_done(const State* state, PyObject* future) {
  const Ref done(PyObject_CallMethodNoArgs(future, (*state)[Name::done]));
  if (!done) PyErr_Clear();
  return done.get() == Py_True;
}

// Continues the wait for the future. Returns true if it is over.
bool is_over(Waiting* waiting, PyObject** yielded, PySendResult* sent) {
  *sent = PyIter_Send(waiting->iterator, Py_None, yielded);
  if (*sent == PYGEN_NEXT) return false;
  Py_CLEAR(waiting->iterator);
  if (*sent == PYGEN_ERROR) return false;
  Py_CLEAR(*yielded);
  return true;
}

PySendResult waiting_send(PyObject* self, PyObject*, PyObject** result) {
  Waiting* const waiting = waiting_of(self);
  *result = nullptr;
  PySendResult sent;
  for (;;) {
    if (waiting->iterator != nullptr && !is_over(waiting, result, &sent)) return sent;
    if (waiting->result == nullptr && waiting->step != nullptr) {
      waiting->result = waiting->step(waiting);
    }
    if (waiting->result != nullptr) {
      waiting->step = nullptr;
      *result = std::exchange(waiting->result, nullptr);
      return PYGEN_RETURN;
    }
    if (PyErr_Occurred() != nullptr) return PYGEN_ERROR;
    if (waiting->step == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, "it was already awaited");
      return PYGEN_ERROR;
    }
    // A task that was cancelled has cancelled the future that it waited for.
    if (*waiting->future != nullptr && is_done(waiting->state, *waiting->future)) {
      Py_CLEAR(*waiting->future);
    }
    if (!begin_wait(waiting)) return PYGEN_ERROR;
  }
}

PyObject* waiting_next(PyObject* self) {
  PyObject* result;
  const PySendResult sent = waiting_send(self, Py_None, &result);
  if (sent != PYGEN_RETURN) return result;
  const Ref value(result);
  const Ref stop(PyObject_CallOneArg(PyExc_StopIteration, value.get()));
  if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
  return nullptr;
}

int waiting_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(waiting_of(self)->owner);
  Py_VISIT(waiting_of(self)->iterator);
  Py_VISIT(waiting_of(self)->data);
  Py_VISIT(waiting_of(self)->result);
  return 0;
}

int waiting_clear(PyObject* self) {
  Waiting* const waiting = waiting_of(self);
  waiting->step = nullptr;
  Py_CLEAR(waiting->iterator);
  Py_CLEAR(waiting->data);
  Py_CLEAR(waiting->result);
  Py_CLEAR(waiting->owner);
  return 0;
}

PyType_Slot slots[] = {{Py_am_await, as_slot(PyObject_SelfIter)},
                       {Py_am_send, as_slot(waiting_send)},
                       {Py_tp_iter, as_slot(PyObject_SelfIter)},
                       {Py_tp_iternext, as_slot(waiting_next)},
                       {Py_tp_dealloc, as_slot(pyspate::dealloc_cleared<waiting_clear>)},
                       {Py_tp_traverse, as_slot(waiting_traverse)},
                       {Py_tp_clear, as_slot(waiting_clear)},
                       {}};

PySendResult done_send(PyObject*, PyObject*, PyObject** result) {
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PyObject* done_next(PyObject*) { return nullptr; }  // StopIteration, whose value is None.

void done_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot done_slots[] = {{Py_am_await, as_slot(PyObject_SelfIter)},
                            {Py_am_send, as_slot(done_send)},
                            {Py_tp_iter, as_slot(PyObject_SelfIter)},
                            {Py_tp_iternext, as_slot(done_next)},
                            {Py_tp_dealloc, as_slot(done_dealloc)},
                            {}};

Waiting* make(const State* state, PyObject* owner) {
  PyObject* const self = state->waiting_type->tp_alloc(state->waiting_type, 0);
  if (self == nullptr) return nullptr;
  Waiting* const waiting = waiting_of(self);
  waiting->state = state;
  waiting->owner = Py_NewRef(owner);
  return waiting;
}

}  // namespace

PyType_Spec waiting_spec = {"spate_server._native.Waiting", sizeof(Waiting), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots};
PyType_Spec done_spec = {"spate_server._native.Done", sizeof(PyObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, done_slots};

PyObject* wait_for(const State* state, PyObject* owner, PyObject* loop, PyObject** future,
                   Step step, PyObject* data) {
  Waiting* const waiting = make(state, owner);
  if (waiting == nullptr) return nullptr;
  Ref self(reinterpret_cast<PyObject*>(waiting));
  waiting->loop = loop;
  waiting->future = future;
  waiting->step = step;
  waiting->data = Py_XNewRef(data);
  waiting->result = step(waiting);
  if (waiting->result == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  return self.release();
}

PyObject* ready(const State* state, PyObject* owner, PyObject* result) {
  Ref value(result);
  if (result == Py_None) return Py_NewRef(state->done);
  Waiting* const waiting = value ? make(state, owner) : nullptr;
  if (waiting == nullptr) return nullptr;
  waiting->result = value.release();
  return reinterpret_cast<PyObject*>(waiting);
}

void wake(const State* state, PyObject** future) {
  const Ref woken(std::exchange(*future, nullptr));
  if (!woken || is_done(state, woken.get())) return;
  const Ref done(PyObject_CallMethodOneArg(woken.get(), (*state)[Name::set_result], Py_None));
  if (!done) PyErr_Clear();  // The asyncio loop is closed: nothing waits.
}

}  // namespace spate_server
