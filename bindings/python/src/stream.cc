// Receiving and sending of a transport.
#include <sys/socket.h>

#include <cerrno>

#include "transport.h"

namespace pyspate {
namespace {

constexpr std::size_t kGathered = 32 * 1024;  // More than that is sent before the callback returns.
constexpr std::size_t kMuch = 64 * 1024;      // From here on a read goes to where it stays.
constexpr int kLostWritesBeforeWarning = 5;  // As asyncio's.

bool is_transient(int error) { return error == EAGAIN || error == EINTR; }

// ---- receiving

int end_of_stream(Transport* transport) {
  const Ref keep_open =
      call_protocol(transport, transport->core->state->names.eof_received, nullptr, true);
  const int truth = keep_open ? PyObject_IsTrue(keep_open.get()) : -1;
  if (truth < 0) {
    if (is_exit()) return -1;
    return fail(transport, "Fatal error: protocol.eof_received() call failed.");
  }
  if (truth == 0) {
    close(transport);
  } else {
    transport->is_at_end = true;
    watch(transport, transport->events & ~SPATE_READ);
  }
  return 0;
}

// Handles the result of a read. Returns 1 if there is data, else as call().
int check_read(Transport* transport, ssize_t size, int error) {
  if (size > 0) return 1;
  if (size == 0) return end_of_stream(transport);
  if (is_transient(error)) return 0;
  raise_errno(error);
  return fail(transport, "Fatal read error on socket transport");
}

// Returns the received bytes, or null; `result` is as check_read() then.
Ref receive(Transport* transport, int* result) {
  if (!transport->reads_much) {
    char* const buffer = transport->core->read_buffer;
    const ssize_t size = ::recv(transport->fd, buffer, kReadBuffer, 0);
    *result = check_read(transport, size, errno);
    if (*result != 1) return Ref();
    transport->reads_much = static_cast<std::size_t>(size) >= kMuch;
    return Ref(PyBytes_FromStringAndSize(buffer, size));
  }
  Ref bytes(PyBytes_FromStringAndSize(nullptr, kReadBuffer));
  if (!bytes) return bytes;
  const ssize_t size = ::recv(transport->fd, PyBytes_AS_STRING(bytes.get()), kReadBuffer, 0);
  const int error = errno;
  *result = check_read(transport, size, error);
  if (*result != 1) return Ref();
  transport->reads_much = static_cast<std::size_t>(size) >= kMuch;
  PyObject* resized = bytes.release();
  if (_PyBytes_Resize(&resized, size) < 0) return Ref();
  return Ref(resized);
}

int read_data(Transport* transport) {
  int result = 1;
  const Ref data = receive(transport, &result);
  if (result != 1) return result;
  if (!data) return fail(transport, "Fatal read error on socket transport");
  if (call_protocol(transport, transport->core->state->names.data_received, data.get(), true)) {
    return 0;
  }
  if (is_exit()) return -1;
  return fail(transport, "Fatal error: protocol.data_received() call failed.");
}

// Reads into the protocol's own buffer.
int read_into_buffer(Transport* transport) {
  const State& state = *transport->core->state;
  Py_buffer view{};
  const Ref buffer = call_protocol(transport, state.names.get_buffer, state.minus_one, true);
  bool is_usable = buffer && PyObject_GetBuffer(buffer.get(), &view, PyBUF_WRITABLE) == 0;
  if (is_usable && view.len == 0) {
    PyBuffer_Release(&view);
    PyErr_SetString(PyExc_RuntimeError, "get_buffer() returned an empty buffer");
    is_usable = false;
  }
  if (!is_usable) {
    if (is_exit()) return -1;
    return fail(transport, "Fatal error: protocol.get_buffer() call failed.");
  }
  ssize_t size = -1;
  int error = EAGAIN;
  if (transport->lost == 0) {  // get_buffer() may have ended the connection.
    size = ::recv(transport->fd, view.buf, static_cast<std::size_t>(view.len), 0);
    error = errno;
  }
  PyBuffer_Release(&view);
  const int result = check_read(transport, size, error);
  if (result != 1) return result;
  const Ref count(PyLong_FromSsize_t(size));
  if (count && call_protocol(transport, state.names.buffer_updated, count.get(), true)) return 0;
  if (is_exit()) return -1;
  return fail(transport, "Fatal error: protocol.buffer_updated() call failed.");
}

// ---- sending

bool is_broken(Transport* transport) { return transport->lost > 0 || !transport->is_open; }

// Calls pause_writing() or resume_writing().
void call_flow_control(Transport* transport, PyObject* name, const char* message) {
  if (transport->protocol == nullptr) return;
  if (call_protocol(transport, name, nullptr, false)) return;
  report(transport->core, message, nullptr, transport->self);
  PyErr_Clear();
}

void resume_protocol_if_empty(Transport* transport) {
  if (!transport->is_protocol_paused || transport->queued > transport->low_water) return;
  transport->is_protocol_paused = false;
  call_flow_control(transport, transport->core->state->names.resume_writing,
                    "protocol.resume_writing() failed");
}

void settle_waiter(Transport* transport, PyObject* name, PyObject* argument) {
  if (transport->empty_waiter == nullptr) return;
  const ExceptionKeeper exception;
  const Ref waiter = Ref::copy(transport->empty_waiter);
  const Ref done(PyObject_CallMethodOneArg(waiter.get(), name, argument));
  if (!done) PyErr_Clear();
}

void fail_write(Transport* transport, int error) {
  raise_errno(error);
  if (transport->empty_waiter != nullptr) {
    Ref exception = take_exception();
    settle_waiter(transport, transport->core->state->names.set_exception, exception.get());
    raise(std::move(exception));
  }
  if (fail(transport, "Fatal write error on socket transport") < 0) PyErr_Clear();
}

// Sends as much of the queue as the kernel takes. Returns an errno, or 0.
int send_queue(Transport* transport) {
  while (transport->queue.size() > 0) {
    Vector vector;
    fill(vector, transport->queue);
    ssize_t size;
    if (vector.count == 1) {
      size = ::send(transport->fd, vector.parts[0].iov_base, vector.size, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = vector.parts;
      message.msg_iovlen = static_cast<std::size_t>(vector.count);
      size = ::sendmsg(transport->fd, &message, MSG_NOSIGNAL);
    }
    if (size < 0) return is_transient(errno) ? 0 : errno;
    const auto sent = static_cast<std::size_t>(size);
    transport->queued -= sent;
    drop_front(transport->queue, sent);
    if (sent < vector.size) return 0;
  }
  return 0;
}

// After the queue has become empty.
void finish_sending(Transport* transport) {
  watch(transport, transport->events & ~SPATE_WRITE);
  settle_waiter(transport, transport->core->state->names.set_result, Py_None);
  if (transport->is_closing) {
    ++transport->lost;
    call_later_turn(transport, transport->core->state->names.call_connection_lost, Py_None);
  } else if (transport->has_written_eof) {
    ::shutdown(transport->fd, SHUT_WR);
  }
}

void flush(Transport* transport) {
  if (is_broken(transport)) return;
  const Ref self = Ref::copy(transport->self);
  if (const int error = send_queue(transport)) {
    fail_write(transport, error);
    return;
  }
  resume_protocol_if_empty(transport);
  if (is_broken(transport)) return;
  if (transport->queue.size() == 0) {
    finish_sending(transport);
  } else {
    watch(transport, transport->events | SPATE_WRITE);
  }
}

// Makes the loop send the queue when the callback returns.
bool gather(Transport* transport) {
  if (transport->is_written) return true;
  if (!transport->core->written.push(transport)) return false;
  Py_INCREF(transport->self);
  transport->is_written = true;
  return true;
}

bool may_write(Transport* transport, const char* method) {
  if (transport->has_written_eof) {
    PyErr_Format(PyExc_RuntimeError, "Cannot call %s() after write_eof()", method);
    return false;
  }
  if (transport->empty_waiter != nullptr) {
    PyErr_Format(PyExc_RuntimeError, "unable to %s; sendfile is in progress", method);
    return false;
  }
  return true;
}

// Returns whether the connection was lost. Counts the writes after that.
bool is_lost(Transport* transport) {
  if (transport->lost == 0) return false;
  if (transport->lost++ >= kLostWritesBeforeWarning) {
    const Ref done(PyObject_CallNoArgs(transport->core->state->lookups.warn_of_lost_write));
    if (!done) PyErr_Clear();
  }
  return true;
}

// Takes bytes over.
bool enqueue(Transport* transport, Ref bytes) {
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get()));
  if (size == 0) return true;
  if (!transport->queue.push({bytes.get(), 0})) return false;
  bytes.release();
  transport->queued += size;
  return true;
}

// Sends the queue at once or when the callback returns. If the kernel is full, call_transport()
// does.
bool send_queued(Transport* transport) {
  if ((transport->events & SPATE_WRITE) == 0) {
    const Core* const core = transport->core;
    if (core->is_calling && !core->is_asleep && transport->queued <= kGathered) {
      return gather(transport);
    }
    flush(transport);
  }
  pause_protocol_if_full(transport);
  return true;
}

Ref to_bytes(PyObject* data) {
  if (PyBytes_Check(data) || PyByteArray_Check(data) || PyMemoryView_Check(data)) {
    return copy_bytes(data);
  }
  PyErr_Format(PyExc_TypeError,
               "data argument must be a bytes, bytearray, or memoryview object, not '%s'",
               Py_TYPE(data)->tp_name);
  return Ref();
}

}  // namespace

int call_transport(Transport* transport, std::uint32_t events) {
  const Ref self = Ref::copy(transport->self);
  if ((events & (SPATE_WRITE | SPATE_ERROR)) != 0) {
    flush(transport);
    if (PyErr_Occurred()) return -1;
  }
  if ((events & (SPATE_READ | SPATE_ERROR)) == 0) return 0;
  if (transport->lost > 0 || transport->is_closing || transport->is_paused ||
      transport->is_at_end) {
    return 0;
  }
  return transport->is_buffered ? read_into_buffer(transport) : read_data(transport);
}

void flush_written(Core* core) {
  const ExceptionKeeper exception;
  // A protocol's callback may write to others.
  for (std::size_t i = 0; i < core->written.size(); ++i) {
    Transport* const transport = core->written[i];
    settle(transport);
    Py_DECREF(transport->self);
  }
  core->written.shrink(0);
}

void settle(Transport* transport) {
  if (!transport->is_written) return;
  transport->is_written = false;
  flush(transport);
  pause_protocol_if_full(transport);
}

void clear_queue(Transport* transport) {
  transport->queued = 0;
  drop_all(transport->queue);
}

void pause_protocol_if_full(Transport* transport) {
  if (transport->is_protocol_paused || transport->queued <= transport->high_water) return;
  transport->is_protocol_paused = true;
  call_flow_control(transport, transport->core->state->names.pause_writing,
                    "protocol.pause_writing() failed");
}

PyObject* transport_write(PyObject* self, PyObject* data) {
  Transport* const transport = transport_of(self);
  Ref bytes = to_bytes(data);
  if (!bytes || !may_write(transport, "write")) return nullptr;
  if (PyBytes_GET_SIZE(bytes.get()) == 0 || is_lost(transport)) Py_RETURN_NONE;
  if (!enqueue(transport, std::move(bytes)) || !send_queued(transport)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* transport_writelines(PyObject* self, PyObject* pieces) {
  Transport* const transport = transport_of(self);
  if (!may_write(transport, "writelines")) return nullptr;
  const Ref list(PySequence_Fast(pieces, "writelines() needs an iterable"));
  if (!list) return nullptr;
  if (PySequence_Fast_GET_SIZE(list.get()) == 0 || is_lost(transport)) Py_RETURN_NONE;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    Ref bytes = to_bytes(PySequence_Fast_GET_ITEM(list.get(), i));
    if (!bytes || !enqueue(transport, std::move(bytes))) return nullptr;
  }
  if (transport->queue.size() > 0 && !send_queued(transport)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* transport_write_eof(PyObject* self, PyObject*) {
  Transport* const transport = transport_of(self);
  if (transport->is_closing || transport->has_written_eof) Py_RETURN_NONE;
  settle(transport);
  if (transport->is_closing) Py_RETURN_NONE;
  transport->has_written_eof = true;
  if (transport->queue.size() == 0) ::shutdown(transport->fd, SHUT_WR);
  Py_RETURN_NONE;
}

// asyncio would have sent gathered data by now.
PyObject* transport_get_write_buffer_size(PyObject* self, PyObject*) {
  settle(transport_of(self));
  return PyLong_FromSize_t(transport_of(self)->queued);
}
PyObject* transport_get_write_buffer_limits(PyObject* self, PyObject*) {
  return Py_BuildValue("nn", static_cast<Py_ssize_t>(transport_of(self)->low_water),
                       static_cast<Py_ssize_t>(transport_of(self)->high_water));
}

PyObject* transport_set_write_buffer_limits(PyObject* self, PyObject* arguments,
                                            PyObject* keywords) {
  static const char* const names[] = {"high", "low", nullptr};
  PyObject *high_object = Py_None, *low_object = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO", const_cast<char**>(names),
                                   &high_object, &low_object)) {
    return nullptr;
  }
  Py_ssize_t high = kHighWater;
  Py_ssize_t low = high_object == Py_None ? kHighWater / 4 : 0;
  if (low_object != Py_None) low = PyLong_AsSsize_t(low_object);
  if (high_object != Py_None) {
    high = PyLong_AsSsize_t(high_object);
    if (low_object == Py_None) low = high / 4;
  } else if (low_object != Py_None) {
    high = 4 * low;
  }
  if (PyErr_Occurred()) return nullptr;
  if (high < low || low < 0) {
    PyErr_Format(PyExc_ValueError, "high (%zd) must be >= low (%zd) must be >= 0", high, low);
    return nullptr;
  }
  Transport* const transport = transport_of(self);
  transport->high_water = static_cast<std::size_t>(high);
  transport->low_water = static_cast<std::size_t>(low);
  pause_protocol_if_full(transport);
  Py_RETURN_NONE;
}

PyObject* transport_make_empty_waiter(PyObject* self, PyObject*) {
  Transport* const transport = transport_of(self);
  if (transport->empty_waiter != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "Empty waiter is already set");
    return nullptr;
  }
  settle(transport);
  const State& state = *transport->core->state;
  PyObject* const loop = as_object(transport->core);
  Ref waiter(PyObject_Vectorcall(state.lookups.future, &loop, 0, state.loop_keyword));
  if (!waiter) return nullptr;
  if (transport->queue.size() == 0) {
    const Ref done(PyObject_CallMethodOneArg(waiter.get(), state.names.set_result, Py_None));
    if (!done) return nullptr;
  }
  transport->empty_waiter = Py_NewRef(waiter.get());
  return waiter.release();
}
PyObject* transport_reset_empty_waiter(PyObject* self, PyObject*) {
  Py_CLEAR(transport_of(self)->empty_waiter);
  Py_RETURN_NONE;
}

}  // namespace pyspate
