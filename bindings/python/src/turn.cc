// A turn of the loop, in asyncio's order: ready callbacks, events of the kernel, expired timers.
#include <algorithm>

#include "core.h"
#include "transport.h"

namespace pyspate {
namespace {

// With something to call, the kernel is asked every so many turns only, and after so many seconds.
constexpr unsigned kTurnsWithoutLooking = 16;
constexpr double kSecondsWithoutLooking = 20e-6;
constexpr double kLongestWait = 86400;

struct Batch {
  spate_event events[kBatch];
  int count = 0;
};

// Returns how long to wait, in nanoseconds; -1: for ever, -2: an error.
std::int64_t timeout_of(Core* core) {
  drop_cancelled_timers(core);
  if (core->is_stopping || core->ready.size() > 0) return 0;
  if (core->timers.size() == 0) return -1;
  const double time = time_of(core);
  if (time == -1 && PyErr_Occurred()) return -2;
  const double left = core->timers[0].when - time;
  if (!(left > 0)) return 0;
  return static_cast<std::int64_t>((left < kLongestWait ? left : kLongestWait) * 1e9) + 1;
}

bool may_skip(Core* core, double time) {
  return !core->is_stopping && ++core->skipped < kTurnsWithoutLooking &&
         time - core->looked < kSecondsWithoutLooking;
}

void poll(Core* core, Batch& batch, std::int64_t timeout, double time) {
  Metrics& metrics = core->metrics;
  metrics.longest_turn = std::max(metrics.longest_turn, time - core->looked);
  core->may_block = timeout != 0;
  batch.count = spate_loop_poll(core->loop, batch.events, kBatch, timeout);
  core->skipped = 0;
  core->looked = now();
  if (timeout == 0) return;
  ++metrics.waits;
  metrics.waiting += core->looked - time;
}

bool look(Core* core, Batch& batch) {
  const std::int64_t timeout = timeout_of(core);
  if (timeout < -1 || !notice_fork(core)) return false;
  const double time = now();
  if (timeout != 0 || !may_skip(core, time)) poll(core, batch, timeout, time);
  if (PyErr_CheckSignals() < 0) return false;
  if (batch.count >= 0) return true;
  raise_errno(-std::exchange(batch.count, 0));
  return false;
}

int call_usual(Core* core, Handle* handle) {
  if (!core->is_debug) return call(handle);
  const Ref done(PyObject_CallFunctionObjArgs(core->state->lookups.run_in_debug_mode,
                                              as_object(core), as_object(handle), nullptr));
  return done ? 0 : -1;
}

int call_timed(Core* core, Handle* handle) {
  const double began = now();
  const int result = call_usual(core, handle);
  note_duration(core, as_object(handle), began);
  return result;
}

int call_and_drop(Core* core, Handle* handle) {
  int result = 0;
  if (!handle->is_cancelled) {
    ++core->metrics.callbacks;
    result = core->slow_function == nullptr ? call_usual(core, handle) : call_timed(core, handle);
  }
  Py_DECREF(as_object(handle));
  if (core->written.size() > 0) flush_written(core);
  return result;
}

// Calls a handle for the last time. A program may keep it; its references are cleared.
int call_last(Core* core, Handle* handle) {
  const bool is_kept = Py_REFCNT(as_object(handle)) > 1 || core->slow_function != nullptr;
  if (!is_kept || core->is_debug) return call_and_drop(core, handle);
  const Ref kept = Ref::copy(as_object(handle));
  const int result = call_and_drop(core, handle);
  const ExceptionKeeper exception;
  clear(handle);
  return result;
}

int call_ready(Core* core, std::size_t count) {
  for (; count > 0 && core->ready.size() > 0; --count) {
    if (call_last(core, core->ready.pop()) < 0) return -1;
  }
  return 0;
}

int call_watch(Core* core, Watch* watch, std::uint32_t events) {
  if ((events & (SPATE_READ | SPATE_ERROR)) != 0 && watch->reader != nullptr) {
    Py_INCREF(as_object(watch->reader));
    if (call_and_drop(core, watch->reader) < 0) return -1;
  }
  if ((events & (SPATE_WRITE | SPATE_ERROR)) != 0 && watch->writer != nullptr) {
    Py_INCREF(as_object(watch->writer));
    return call_and_drop(core, watch->writer);
  }
  return 0;
}

int call_native(Core* core, Transport* transport, std::uint32_t events) {
  ++core->metrics.callbacks;
  if (core->slow_function == nullptr) return call_transport(transport, events);
  const Ref self = Ref::copy(transport->self);
  const double began = now();
  const int result = call_transport(transport, events);
  note_duration(core, self.get(), began);
  return result;
}

int call_event(Core* core, spate_event* event) {
  spate_watcher* const watcher = spate_event_claim(core->loop, event);
  if (watcher == nullptr) return 0;
  const auto data = reinterpret_cast<std::uintptr_t>(watcher->data);
  if ((data & kIsTransport) == 0) {
    return call_watch(core, reinterpret_cast<Watch*>(data), event->events);
  }
  const int result = call_native(
      core, reinterpret_cast<Transport*>(data - kIsTransport), event->events);
  if (core->written.size() > 0) flush_written(core);
  return result;
}

int call_expired(Core* core, std::size_t first) {
  for (std::size_t i = first; i < core->expired.size(); ++i) {
    if (call_last(core, std::exchange(core->expired[i], nullptr)) < 0) return -1;
  }
  return 0;
}

int call_all(Core* core, Batch& batch, std::size_t ready, std::size_t first_expired) {
  if (call_ready(core, ready) < 0) return -1;
  for (int i = 0; i < batch.count; ++i) {
    if (call_event(core, &batch.events[i]) < 0) return -1;
  }
  return call_expired(core, first_expired);
}

// Queues again what an exception has left uncalled.
void give_back(Core* core, std::size_t first_expired) {
  const ExceptionKeeper exception;
  spate_loop_give_back(core->loop);
  for (std::size_t i = first_expired; i < core->expired.size(); ++i) {
    Handle* const handle = core->expired[i];
    if (handle != nullptr && !core->ready.push(handle)) Py_DECREF(as_object(handle));
  }
}

int turn(Core* core) {
  if (!check_open(core)) return -1;
  ++core->metrics.turns;
  Batch batch;
  const bool was_calling = std::exchange(core->is_calling, true);
  const std::size_t first_expired = core->expired.size();
  int result = -1;
  if (look(core, batch)) {
    const std::size_t ready = core->ready.size();
    if (take_expired(core)) result = call_all(core, batch, ready, first_expired);
  }
  if (result < 0) give_back(core, first_expired);
  core->expired.shrink(first_expired);
  if (core->written.size() > 0) flush_written(core);  // By a signal's handler.
  core->is_calling = was_calling;
  return result;
}

int run(Core* core, bool is_single) {
  const bool is_nested = core->began > 0;
  core->looked = now();
  if (!is_nested) core->began = core->looked;
  int result;
  do {
    result = turn(core);
  } while (result == 0 && !is_single && !core->is_stopping);
  if (is_nested) return result;
  core->metrics.running += now() - core->began;
  core->began = 0;
  return result;
}

}  // namespace

void before_wait(spate_loop*, void* data) {
  Core* const core = static_cast<Core*>(data);
  if (!core->may_block) return;
  core->is_asleep = true;
  core->waiting = PyEval_SaveThread();
}

void after_wait(spate_loop*, void* data) {
  Core* const core = static_cast<Core*>(data);
  if (!core->may_block) return;
  PyEval_RestoreThread(core->waiting);
  core->is_asleep = false;
}

// Asyncio calls it for each turn. Inside of run_forever() it makes all turns up to stop(), so that
// nothing in Python runs between two of them.
PyObject* core_run_once(PyObject* self, PyObject*) {
  Core* const core = core_of(self);
  const Ref thread(PyObject_GetAttr(self, core->state->names.thread_id));
  if (!thread) return nullptr;
  const bool is_single = thread.get() == Py_None || core->is_calling;
  core->skipped = kTurnsWithoutLooking;  // Each run looks at least once.
  return run(core, is_single) < 0 ? nullptr : Py_NewRef(Py_None);
}

}  // namespace pyspate
