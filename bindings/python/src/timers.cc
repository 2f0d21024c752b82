// The timers of a loop: a heap of four, from which cancelled ones are removed late.
#include "core.h"

#include <ctime>

namespace pyspate {
namespace {

constexpr std::size_t kWays = 4;
constexpr std::size_t kFewTimers = 100;
// As asyncio's: a timer within the clock's resolution has expired.
constexpr double kResolution = 1e-9;

void sift_up(Array<Timed>& heap, std::size_t at) {
  const Timed timed = heap[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / kWays;
    if (!timed.is_before(heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = timed;
}

void sift_down(Array<Timed>& heap, std::size_t at) {
  const Timed timed = heap[at];
  const std::size_t size = heap.size();
  for (;;) {
    const std::size_t first = at * kWays + 1;
    if (first >= size) break;
    std::size_t least = first;
    for (std::size_t i = first + 1; i < size && i < first + kWays; ++i) {
      if (heap[i].is_before(heap[least])) least = i;
    }
    if (!heap[least].is_before(timed)) break;
    heap[at] = heap[least];
    at = least;
  }
  heap[at] = timed;
}

// Returns the handle of the first timer, and its reference.
Handle* take_first(Core* core) {
  Array<Timed>& heap = core->timers;
  Handle* const handle = heap[0].handle;
  const Timed last = heap.take_last();
  if (heap.size() > 0) {
    heap[0] = last;
    sift_down(heap, 0);
  }
  handle->is_in_heap = false;
  if (handle->is_cancelled) --core->cancelled_timers;
  return handle;
}

// Removes all cancelled timers. Their release may run Python code, so it comes last.
void compact(Core* core) {
  Array<Timed> cancelled{};
  Array<Timed>& heap = core->timers;
  if (!cancelled.reserve(core->cancelled_timers)) {
    PyErr_Clear();  // They go one by one, then.
    return;
  }
  std::size_t kept = 0;
  for (Timed& timed : heap) {
    if (timed.handle->is_cancelled) {
      timed.handle->is_in_heap = false;
      cancelled.push(timed);
    } else {
      heap[kept++] = timed;
    }
  }
  heap.shrink(kept);
  for (std::size_t i = kept / kWays + 1; i-- > 0;) {
    if (i < kept) sift_down(heap, i);
  }
  core->cancelled_timers = 0;
  for (Timed& timed : cancelled) Py_DECREF(as_object(timed.handle));
  cancelled.free();
}

PyObject* add_timer(Core* core, double when, PyObject* const* call, Py_ssize_t size,
                    PyObject* context) {
  Handle* const handle = make_handle(core, call, size, context);
  if (handle == nullptr) return nullptr;
  handle->is_timer = true;
  handle->when = when;
  if (!core->timers.push({when, core->sequence++, handle})) {
    Py_DECREF(as_object(handle));
    return nullptr;
  }
  handle->is_in_heap = true;
  sift_up(core->timers, core->timers.size() - 1);
  return Py_NewRef(as_object(handle));
}

// Parses the number of call_later() and call_at(), and checks what both check.
bool parse(Core* core, PyObject* const* arguments, Py_ssize_t size, PyObject* names,
           const char* method, double* number, PyObject** context) {
  if (size < 2) {
    PyErr_Format(PyExc_TypeError, "%s() needs a time and a callback", method);
    return false;
  }
  if (arguments[0] == Py_None) {
    PyErr_Format(PyExc_TypeError, "the time of %s() must not be None", method);
    return false;
  }
  *number = PyFloat_AsDouble(arguments[0]);
  if (*number == -1.0 && PyErr_Occurred()) return false;
  if (!check_open(core) || !parse_context(arguments, size, names, context)) return false;
  return !core->is_debug || check_debug(core, arguments[1], method, true);
}

}  // namespace

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double time_of(Core* core) {
  if (!core->has_own_clock && !core->is_patched) return now();
  const Ref time(PyObject_CallMethodNoArgs(as_object(core), core->state->names.time));
  return time ? PyFloat_AsDouble(time.get()) : -1;
}

void note_cancelled_timer(Core* core) {
  const std::size_t size = core->timers.size();
  if (++core->cancelled_timers * 2 > size && size > kFewTimers) compact(core);
}

void drop_cancelled_timers(Core* core) {
  while (core->timers.size() > 0 && core->timers[0].handle->is_cancelled) {
    Py_DECREF(as_object(take_first(core)));
  }
}

bool take_expired(Core* core) {
  if (core->timers.size() == 0) return true;
  const double time = time_of(core);
  if (time == -1 && PyErr_Occurred()) return false;
  while (core->timers.size() > 0 && core->timers[0].when < time + kResolution) {
    if (!core->expired.push(core->timers[0].handle)) return false;
    Handle* const handle = take_first(core);
    if (!handle->is_cancelled) continue;
    core->expired.take_last();
    Py_DECREF(as_object(handle));
  }
  return true;
}

PyObject* core_time(PyObject*, PyObject*) { return PyFloat_FromDouble(now()); }

PyObject* core_call_later(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names) {
  Core* const core = core_of(self);
  double delay;
  PyObject* context;
  if (!parse(core, arguments, size, names, "call_later", &delay, &context)) return nullptr;
  const double time = time_of(core);
  if (time == -1 && PyErr_Occurred()) return nullptr;
  return add_timer(core, time + delay, arguments + 1, size - 1, context);
}

PyObject* core_call_at(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                       PyObject* names) {
  Core* const core = core_of(self);
  double when;
  PyObject* context;
  if (!parse(core, arguments, size, names, "call_at", &when, &context)) return nullptr;
  return add_timer(core, when, arguments + 1, size - 1, context);
}

}  // namespace pyspate
