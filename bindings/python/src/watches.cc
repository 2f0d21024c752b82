// Callbacks of descriptors.
#include "core.h"
#include "transport.h"

namespace pyspate {
namespace {

enum class Way { read, write };

Handle*& place_of(Watch* watch, Way way) {
  return way == Way::read ? watch->reader : watch->writer;
}

// A file that was closed while it was watched is found by its object.
Watch* find_closed(Core* core, PyObject* file) {
  for (Watch* watch : core->watches) {
    if (watch != nullptr && watch->file == file) return watch;
  }
  return nullptr;
}

Watch* watch_of(Core* core, int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (!core->watches.extend(index + 1)) return nullptr;
  Watch*& watch = core->watches[index];
  if (watch != nullptr) return watch;
  watch = static_cast<Watch*>(PyMem_RawCalloc(1, sizeof(Watch)));
  if (watch == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  watch->fd = fd;
  spate_io_init(&watch->io, core->loop, nullptr, watch);
  return watch;
}

// Watches for the events that have a handle. `is_new`: the number may be another file than it was.
bool update(Watch* watch, bool is_new) {
  const std::uint32_t events =
      (watch->reader != nullptr ? SPATE_READ : 0) | (watch->writer != nullptr ? SPATE_WRITE : 0);
  int code = 0;
  if (events == 0) {
    spate_io_stop(&watch->io);
  } else if (spate_is_active(&watch->io.watcher) && !is_new) {
    code = spate_io_modify(&watch->io, events);
  } else {
    spate_io_stop_now(&watch->io);
    code = spate_io_set(&watch->io, watch->fd, events);
    if (code >= 0) code = spate_io_start_now(&watch->io);
  }
  if (code >= 0) return true;
  raise_errno(-code);
  return false;
}

PyObject* add(PyObject* self, PyObject* const* arguments, Py_ssize_t size, PyObject* names,
              Way way) {
  Core* const core = core_of(self);
  PyObject* context;
  if (size < 2) {
    PyErr_SetString(PyExc_TypeError, "a descriptor and a callback are needed");
    return nullptr;
  }
  if (!check_open(core) || !parse_context(arguments, size, names, &context)) return nullptr;
  const int fd = descriptor_of(arguments[0]);
  if (fd < 0 || !notice_fork(core)) return nullptr;
  Watch* const watch = watch_of(core, fd);
  if (watch == nullptr) return nullptr;
  Handle* const handle = make_handle(core, arguments + 1, size - 1, context);
  if (handle == nullptr) return nullptr;
  Handle*& place = place_of(watch, way);
  Handle* const before = std::exchange(place, handle);
  if (!update(watch, before != nullptr)) {
    place = before;
    Py_DECREF(as_object(handle));
    return nullptr;
  }
  const Ref result = Ref::copy(as_object(handle));
  const Ref old_file(
      std::exchange(watch->file, PyLong_Check(arguments[0]) ? nullptr : Py_NewRef(arguments[0])));
  if (before != nullptr) {
    cancel(before);
    Py_DECREF(as_object(before));
  }
  return Py_NewRef(result.get());
}

Watch* find(Core* core, PyObject* file) {
  const int fd = descriptor_of(file);
  if (fd < 0) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return nullptr;
    Watch* const watch = find_closed(core, file);
    if (watch != nullptr) PyErr_Clear();
    return watch;
  }
  const auto index = static_cast<std::size_t>(fd);
  return index < core->watches.size() ? core->watches[index] : nullptr;
}

PyObject* remove(PyObject* self, PyObject* file, Way way) {
  Core* const core = core_of(self);
  if (core->is_closed) Py_RETURN_FALSE;
  Watch* const watch = find(core, file);
  if (watch == nullptr) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_FALSE;
  }
  Handle* const handle = std::exchange(place_of(watch, way), nullptr);
  if (handle == nullptr) Py_RETURN_FALSE;
  const bool is_done = update(watch, false);
  const Ref old_file(spate_is_active(&watch->io.watcher) ? nullptr
                                                         : std::exchange(watch->file, nullptr));
  cancel(handle);
  Py_DECREF(as_object(handle));
  if (!is_done) return nullptr;
  Py_RETURN_TRUE;
}

}  // namespace

int descriptor_of(PyObject* file) {
  if (PyLong_Check(file)) {
    const long fd = PyLong_AsLong(file);
    if (fd >= 0 && fd <= INT_MAX) return static_cast<int>(fd);
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "Invalid file descriptor: %ld", fd);
    return -1;
  }
  const int fd = PyObject_AsFileDescriptor(file);
  if (fd >= 0) return fd;
  PyErr_Format(PyExc_ValueError, "Invalid file object: %R", file);
  return -1;
}

PyObject* core_check_no_transport(PyObject* self, PyObject* file) {
  Core* const core = core_of(self);
  const int fd = descriptor_of(file);
  if (fd < 0) {
    // A closed file has no transport. The method that was called refuses the number.
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return nullptr;
    const Ref exception = take_exception();
    if (PyLong_Check(file) || PyObject_HasAttrString(file, "fileno")) Py_RETURN_NONE;
    raise(Ref::copy(exception.get()));
    return nullptr;
  }
  const auto index = static_cast<std::size_t>(fd);
  const Transport* const transport =
      index < core->transports.size() ? core->transports[index] : nullptr;
  // While it sends a file, the descriptor is lent.
  if (transport == nullptr || transport->is_closing || transport->empty_waiter != nullptr) {
    Py_RETURN_NONE;
  }
  PyErr_Format(PyExc_RuntimeError, "File descriptor %R is used by transport %R", file,
               transport->self);
  return nullptr;
}

PyObject* core_add_reader(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names) {
  return add(self, arguments, size, names, Way::read);
}
PyObject* core_add_writer(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names) {
  return add(self, arguments, size, names, Way::write);
}
PyObject* core_remove_reader(PyObject* self, PyObject* file) {
  return remove(self, file, Way::read);
}
PyObject* core_remove_writer(PyObject* self, PyObject* file) {
  return remove(self, file, Way::write);
}

}  // namespace pyspate
