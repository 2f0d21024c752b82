// Figures of a loop, and slow callbacks.
#include "core.h"

namespace pyspate {

void note_duration(Core* core, PyObject* source, double began) {
  const double seconds = now() - began;
  if (seconds < core->slow_seconds || core->slow_function == nullptr) return;
  const ExceptionKeeper exception;
  const Ref function = Ref::copy(core->slow_function);
  const Ref done(PyObject_CallFunction(function.get(), "Od", source, seconds));
  if (!done && report(core, "Exception in the function of set_slow_callback()", nullptr, nullptr)) {
    PyErr_WriteUnraisable(function.get());
  }
}

// _metrics() returns the values of spate.Metrics.
PyObject* core_metrics(PyObject* self, PyObject*) {
  Core* const core = core_of(self);
  const Metrics& metrics = core->metrics;
  const double run = core->began > 0 ? now() - core->began : 0;
  const double busy = metrics.running + run - metrics.waiting;
  return Py_BuildValue("KKKdddnn", metrics.turns, metrics.callbacks, metrics.waits,
                       busy > 0 ? busy : 0.0, metrics.waiting, metrics.longest_turn,
                       static_cast<Py_ssize_t>(core->ready.size()),
                       static_cast<Py_ssize_t>(core->timers.size() - core->cancelled_timers));
}

PyObject* core_set_slow_callback(PyObject* self, PyObject* arguments) {
  Core* const core = core_of(self);
  double seconds;
  PyObject* function;
  if (!PyArg_ParseTuple(arguments, "dO:set_slow_callback", &seconds, &function)) return nullptr;
  const bool is_none = function == Py_None;
  if (!is_none && !PyCallable_Check(function)) {
    PyErr_SetString(PyExc_TypeError, "a callable object or None was expected");
    return nullptr;
  }
  core->slow_seconds = seconds;
  const Ref before(std::exchange(core->slow_function, is_none ? nullptr : Py_NewRef(function)));
  Py_RETURN_NONE;
}

}  // namespace pyspate
