// sock_recv(), sock_recv_into(), sock_sendall() and connecting, when the kernel makes them wait.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core.h"
#include "transport.h"

namespace pyspate {
namespace {

enum class Kind { receive, receive_into, send, connect };

// The reader or writer of a descriptor, and the callback of the future that it fulfils.
struct SocketCall {
  PyObject_HEAD Core* core;  // A strong reference, as all below.
  PyObject* future;
  PyObject* file;    // The socket, or the descriptor's number.
  PyObject* handle;  // The reader's or writer's.
  Py_buffer buffer;  // To receive into, or to send from.
  Py_ssize_t done;   // So much of it was sent.
  Py_ssize_t size;   // To receive.
  Address address;   // To connect to.
  int fd;
  Kind kind;
  bool is_begun;         // connect() was called.
  bool owns_descriptor;  // Until a transport takes it.
  vectorcallfunc vectorcall;
};

SocketCall* of(PyObject* self) { return reinterpret_cast<SocketCall*>(self); }

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

// Returns null, without an exception if the kernel makes the call wait.
Ref fail() {
  if (!would_block(errno)) PyErr_SetFromErrno(PyExc_OSError);
  return Ref();
}

Ref receive(Core* core, int fd, Py_ssize_t wanted) {
  if (wanted <= static_cast<Py_ssize_t>(kReadBuffer)) {
    const ssize_t size = ::recv(fd, core->read_buffer, static_cast<std::size_t>(wanted), 0);
    return size < 0 ? fail() : Ref(PyBytes_FromStringAndSize(core->read_buffer, size));
  }
  Ref bytes(PyBytes_FromStringAndSize(nullptr, wanted));
  if (!bytes) return bytes;
  const ssize_t size =
      ::recv(fd, PyBytes_AS_STRING(bytes.get()), static_cast<std::size_t>(wanted), 0);
  if (size < 0) return fail();
  PyObject* resized = bytes.release();
  return _PyBytes_Resize(&resized, size) < 0 ? Ref() : Ref(resized);
}

Ref receive_into(int fd, const Py_buffer& buffer) {
  const ssize_t size = ::recv(fd, buffer.buf, static_cast<std::size_t>(buffer.len), 0);
  return size < 0 ? fail() : Ref(PyLong_FromSsize_t(size));
}

Ref send_all(int fd, const Py_buffer& buffer, Py_ssize_t* done) {
  while (*done < buffer.len) {
    const char* const from = static_cast<const char*>(buffer.buf) + *done;
    const ssize_t size =
        ::send(fd, from, static_cast<std::size_t>(buffer.len - *done), MSG_NOSIGNAL);
    if (size < 0) return fail();
    *done += size;
  }
  return Ref::copy(Py_None);
}

bool is_connecting(int error) {
  return error == EINPROGRESS || error == EALREADY || would_block(error);
}

// Raises an error of connect() that the kernel reported later.
Ref fail_connect(const Address& address, int error) {
  const Ref tuple = to_python(address);
  const Ref text(tuple ? PyUnicode_FromFormat("Connect call failed %R", tuple.get()) : nullptr);
  const Ref arguments(text ? Py_BuildValue("(iO)", error, text.get()) : nullptr);
  if (arguments) PyErr_SetObject(PyExc_OSError, arguments.get());
  return Ref();
}

Ref connect(SocketCall* call) {
  if (!call->is_begun) {
    call->is_begun = true;
    if (::connect(call->fd, &call->address.any, call->address.size()) == 0) {
      return Ref::copy(Py_None);
    }
    if (!is_connecting(errno)) return Ref(PyErr_SetFromErrno(PyExc_OSError));
    // A peer on the same machine has answered by now.
    pollfd ready{.fd = call->fd, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) <= 0) return Ref();
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  if (error == 0) return Ref::copy(Py_None);
  return is_connecting(error) ? Ref() : fail_connect(call->address, error);
}

Ref try_now(SocketCall* call) {
  switch (call->kind) {
    case Kind::receive:
      return receive(call->core, call->fd, call->size);
    case Kind::receive_into:
      return receive_into(call->fd, call->buffer);
    case Kind::send:
      return send_all(call->fd, call->buffer, &call->done);
    case Kind::connect:
      return connect(call);
  }
  return Ref();
}

bool is_writer(const SocketCall* call) {
  return call->kind == Kind::send || call->kind == Kind::connect;
}

// Stops watching if the descriptor is not another call's. Breaks the cycle with the future.
void stop_watching(SocketCall* call) {
  const Ref handle(std::exchange(call->handle, nullptr));
  if (!handle) return;
  const ExceptionKeeper exception;
  if (!reinterpret_cast<Handle*>(handle.get())->is_cancelled && !call->core->is_closed) {
    auto* const remove = is_writer(call) ? core_remove_writer : core_remove_reader;
    const Ref number(PyLong_FromLong(call->fd));
    const Ref removed(number ? remove(as_object(call->core), number.get()) : nullptr);
    if (!removed) PyErr_Clear();
  }
  const Ref future(std::exchange(call->future, nullptr));
}

// Is called without an argument when the descriptor is ready, and with the future when that is
// done.
PyObject* socket_call(PyObject* self, PyObject* const*, std::size_t count, PyObject*) {
  SocketCall* const call = of(self);
  const Ref kept = Ref::copy(self);
  if (PyVectorcall_NARGS(count) > 0 || call->future == nullptr) {
    stop_watching(call);
    Py_RETURN_NONE;
  }
  const Names& names = call->core->state->names;
  const Ref result = try_now(call);
  const Ref exception = take_exception();
  if (!result && !exception) Py_RETURN_NONE;
  const Ref future = Ref::copy(call->future);
  stop_watching(call);
  const Ref is_done(PyObject_CallMethodNoArgs(future.get(), names.done));
  if (!is_done) return nullptr;
  if (is_done.get() == Py_True) Py_RETURN_NONE;
  return result ? PyObject_CallMethodOneArg(future.get(), names.set_result, result.get())
                : PyObject_CallMethodOneArg(future.get(), names.set_exception, exception.get());
}

void close_descriptor(SocketCall* call) {
  if (std::exchange(call->owns_descriptor, false)) ::close(call->fd);
}

// Gives the connection up that is being opened.
PyObject* socket_call_close(PyObject* self, PyObject*) {
  stop_watching(of(self));
  close_descriptor(of(self));
  Py_RETURN_NONE;
}

int socket_call_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(of(self)->core));
  Py_VISIT(of(self)->future);
  Py_VISIT(of(self)->file);
  Py_VISIT(of(self)->handle);
  Py_VISIT(of(self)->buffer.obj);
  return 0;
}

int socket_call_clear(PyObject* self) {
  Py_CLEAR(of(self)->future);
  Py_CLEAR(of(self)->file);
  Py_CLEAR(of(self)->handle);
  return 0;
}

void socket_call_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  socket_call_clear(self);
  if (of(self)->buffer.obj != nullptr) PyBuffer_Release(&of(self)->buffer);
  close_descriptor(of(self));
  Py_XDECREF(as_object(of(self)->core));
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"close", socket_call_close, METH_NOARGS, nullptr}, {}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(SocketCall, vectorcall), READONLY, nullptr},
    {"future", T_OBJECT, offsetof(SocketCall, future), READONLY, nullptr},
    {}};
PyType_Slot slots[] = {{Py_tp_dealloc, as_slot(socket_call_dealloc)},
                       {Py_tp_traverse, as_slot(socket_call_traverse)},
                       {Py_tp_clear, as_slot(socket_call_clear)},
                       {Py_tp_call, as_slot(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {}};
PyType_Spec spec = {"spate._core.SocketCall", sizeof(SocketCall), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

// Watches the descriptor, and the future for its cancellation.
bool watch_call(SocketCall* call) {
  PyObject* const self = reinterpret_cast<PyObject*>(call);
  PyObject* const arguments[] = {call->file, self};
  auto* const add = is_writer(call) ? core_add_writer : core_add_reader;
  call->handle = add(as_object(call->core), arguments, 2, nullptr);
  if (call->handle == nullptr) return false;
  const Ref added(
      PyObject_CallMethodOneArg(call->future, call->core->state->names.add_done_callback, self));
  return static_cast<bool>(added);
}

// Returns a SocketCall that has taken the buffer over, if there is one.
Ref make_call(Core* core, Kind kind, PyObject* file, int fd, Py_buffer* buffer) {
  PyTypeObject* const type = core->state->socket_call_type;
  Ref self(type->tp_alloc(type, 0));
  if (!self) {
    if (buffer != nullptr) PyBuffer_Release(buffer);
    return self;
  }
  SocketCall* const call = of(self.get());
  call->vectorcall = socket_call;
  call->core = core_of(Py_NewRef(as_object(core)));
  call->file = Py_NewRef(file);
  call->fd = fd;
  call->kind = kind;
  if (buffer != nullptr) call->buffer = *buffer;
  return self;
}

// Returns the result, or a future of it.
PyObject* start(Ref self, bool* is_later) {
  if (!self) return nullptr;
  SocketCall* const call = of(self.get());
  Ref result = try_now(call);
  if (result || PyErr_Occurred()) return result.release();
  *is_later = true;
  call->future = core_create_future(as_object(call->core), nullptr);
  if (call->future == nullptr || !watch_call(call)) return nullptr;
  return Py_NewRef(call->future);
}

// Returns (is it a future, the result or the future).
PyObject* as_pair(PyObject* result, bool is_later) {
  if (result == nullptr) return nullptr;
  const Ref owned(result);
  return PyTuple_Pack(2, is_later ? Py_True : Py_False, result);
}

// Returns the socket's descriptor. A closed one has none, which is an OSError here.
int descriptor_of_socket(PyObject* file) {
  const int fd = descriptor_of(file);
  if (fd < 0 && PyErr_ExceptionMatches(PyExc_ValueError)) raise_errno(EBADF);
  return fd;
}

PyObject* start_with_buffer(PyObject* self, PyObject* arguments, Kind kind, const char* format) {
  PyObject* file;
  Py_buffer buffer;
  if (!PyArg_ParseTuple(arguments, format, &file, &buffer)) return nullptr;
  const int fd = descriptor_of_socket(file);
  if (fd < 0) {
    PyBuffer_Release(&buffer);
    return nullptr;
  }
  bool is_later = false;
  PyObject* const result = start(make_call(core_of(self), kind, file, fd, &buffer), &is_later);
  return as_pair(result, is_later);
}

}  // namespace

PyTypeObject* make_socket_call_type(PyObject* module) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

PyObject* core_socket_receive(PyObject* self, PyObject* arguments) {
  PyObject* file;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(arguments, "On", &file, &size)) return nullptr;
  if (size < 0) {
    PyErr_SetString(PyExc_ValueError, "negative buffersize in recv");
    return nullptr;
  }
  const int fd = descriptor_of_socket(file);
  if (fd < 0) return nullptr;
  Ref call = make_call(core_of(self), Kind::receive, file, fd, nullptr);
  if (call) of(call.get())->size = size;
  bool is_later = false;
  PyObject* const result = start(std::move(call), &is_later);
  return as_pair(result, is_later);
}

PyObject* core_socket_receive_into(PyObject* self, PyObject* arguments) {
  return start_with_buffer(self, arguments, Kind::receive_into, "Ow*");
}

PyObject* core_socket_send(PyObject* self, PyObject* arguments) {
  return start_with_buffer(self, arguments, Kind::send, "Oy*");
}

PyObject* core_socket_connect(PyObject* self, PyObject* arguments) {
  PyObject *file, *tuple;
  if (!PyArg_ParseTuple(arguments, "OO", &file, &tuple)) return nullptr;
  const int fd = descriptor_of_socket(file);
  if (fd < 0) return nullptr;
  int family = AF_UNSPEC;
  socklen_t size = sizeof family;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  Address address;
  if (!from_python(tuple, family, &address)) Py_RETURN_NONE;
  if (PySys_Audit("socket.connect", "OO", file, tuple) < 0) return nullptr;
  Ref call = make_call(core_of(self), Kind::connect, file, fd, nullptr);
  if (call) of(call.get())->address = address;
  bool is_later = false;
  PyObject* const result = start(std::move(call), &is_later);
  return as_pair(result, is_later);
}

PyObject* core_connect(PyObject* self, PyObject* arguments) {
  Core* const core = core_of(self);
  PyObject *host, *port;
  Address address;
  if (!PyArg_ParseTuple(arguments, "OO", &host, &port)) return nullptr;
  if (core->is_closed || !parse_literal(host, port, &address)) Py_RETURN_NONE;
  if (PySys_Audit("socket.connect", "O(OO)", self, host, port) < 0) return nullptr;
  const int fd = ::socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          IPPROTO_TCP);
  if (fd < 0) return PyErr_SetFromErrno(PyExc_OSError);
  const Ref number(PyLong_FromLong(fd));
  Ref call = number ? make_call(core, Kind::connect, number.get(), fd, nullptr) : Ref();
  if (!call) {
    ::close(fd);
    return nullptr;
  }
  of(call.get())->owns_descriptor = true;
  of(call.get())->address = address;
  bool is_later = false;
  const Ref result(start(Ref::copy(call.get()), &is_later));
  return result ? call.release() : nullptr;
}

PyObject* core_make_connected_transport(PyObject* self, PyObject* arguments) {
  Core* const core = core_of(self);
  PyObject *call, *protocol, *waiter;
  if (!PyArg_ParseTuple(arguments, "O!OO", core->state->socket_call_type, &call, &protocol,
                        &waiter) ||
      !check_open(core)) {
    return nullptr;
  }
  if (!std::exchange(of(call)->owns_descriptor, false)) {
    PyErr_SetString(PyExc_RuntimeError, "the connection was closed");
    return nullptr;
  }
  return make_transport(core, {.fd = of(call)->fd, .protocol = protocol, .waiter = waiter})
      .release();
}

}  // namespace pyspate
