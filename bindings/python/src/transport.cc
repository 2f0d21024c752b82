#include "transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

namespace pyspate {
namespace {

void unlink(Transport* transport) {
  Core* const core = transport->core;
  (transport->previous == nullptr ? core->held : transport->previous->next) = transport->next;
  if (transport->next != nullptr) transport->next->previous = transport->previous;
  transport->previous = transport->next = nullptr;
}

// Ends what hold() has begun. The transport may be gone afterwards.
void let_go(Transport* transport) {
  if (!transport->is_held) return;
  transport->is_held = false;
  unlink(transport);
  Py_DECREF(transport->self);
}

bool set_protocol(Transport* transport, PyObject* protocol) {
  const int is_buffered =
      PyObject_IsInstance(protocol, transport->core->state->lookups.buffered_protocol);
  if (is_buffered < 0) return false;
  const Ref before(std::exchange(transport->protocol, Py_NewRef(protocol)));
  transport->is_buffered = is_buffered != 0;
  transport->is_protocol_connected = true;
  return true;
}

// Takes the place of its descriptor among the loop's transports.
bool enter_table(Transport* transport) {
  const auto index = static_cast<std::size_t>(transport->fd);
  if (!transport->core->transports.extend(index + 1)) return false;
  transport->core->transports[index] = transport;
  return true;
}

void leave_table(Transport* transport) {
  const auto index = static_cast<std::size_t>(transport->fd);
  if (transport->core == nullptr || index >= transport->core->transports.size()) return;
  Transport*& place = transport->core->transports[index];
  if (place == transport) place = nullptr;
}

bool attach(Transport* transport) {
  if (transport->server == nullptr) return true;
#if PY_VERSION_HEX >= 0x030D0000
  return static_cast<bool>(Ref(PyObject_CallMethodOneArg(
      transport->server, transport->core->state->names.attach, transport->self)));
#else
  return static_cast<bool>(
      Ref(PyObject_CallMethodNoArgs(transport->server, transport->core->state->names.attach)));
#endif
}

Ref detach(Transport* transport, PyObject* server) {
#if PY_VERSION_HEX >= 0x030D0000
  return Ref(
      PyObject_CallMethodOneArg(server, transport->core->state->names.detach, transport->self));
#else
  return Ref(PyObject_CallMethodNoArgs(server, transport->core->state->names.detach));
#endif
}

struct Given {
  PyObject *loop = nullptr, *sock = nullptr, *protocol = nullptr;
  PyObject *waiter = Py_None, *extra = Py_None, *server = Py_None, *context = Py_None;
  const Connection* connection = nullptr;  // In the place of `sock`.
};

bool parse(PyObject* arguments, PyObject* keywords, Given& given) {
  static const char* const names[] = {"loop",  "sock",   "protocol", "waiter",
                                      "extra", "server", "context",  nullptr};
  return PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO|OOOO:SocketTransport",
                                     const_cast<char**>(names), &given.loop, &given.sock,
                                     &given.protocol, &given.waiter, &given.extra, &given.server,
                                     &given.context) != 0;
}

bool start_later(Transport* transport, PyObject* waiter) {
  hold(transport);
  if (call_later_turn(transport, transport->core->state->names.start, waiter)) return true;
  let_go(transport);
  return false;
}

bool take_descriptor(Transport* transport, const Given& given) {
  if (given.connection != nullptr) {
    transport->fd = given.connection->fd;
    transport->peer = given.connection->peer;
    transport->proto = given.connection->proto;
  } else {
    transport->fd = PyObject_AsFileDescriptor(given.sock);
    if (transport->fd < 0) return false;
    transport->sock = Py_NewRef(given.sock);
  }
  transport->is_open = true;
  return true;
}

bool fill_in(PyObject* self, const Given& given) {
  Transport* const transport = transport_of(self);
  transport->self = self;
  transport->core = core_of(Py_NewRef(given.loop));
  if (!take_descriptor(transport, given)) return false;
  transport->high_water = kHighWater;
  transport->low_water = kHighWater / 4;
  spate_io_init(
      &transport->io, transport->core->loop, nullptr,
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(transport) + kIsTransport));
  transport->context =
      given.context == Py_None ? PyContext_CopyCurrent() : Py_NewRef(given.context);
  if (transport->context == nullptr || !set_protocol(transport, given.protocol) ||
      !set_extra(transport, given.extra)) {
    return false;
  }
  const int on = 1;  // Sockets of other kinds refuse it.
  ::setsockopt(transport->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (given.server != Py_None) transport->server = Py_NewRef(given.server);
  return enter_table(transport) && attach(transport) && start_later(transport, given.waiter);
}

void close_socket(Transport* transport) {
  leave_table(transport);
  if (transport->core->loop != nullptr) spate_io_stop_before_close(&transport->io);
  transport->events = 0;
  const bool was_open = std::exchange(transport->is_open, false);
  if (transport->sock == nullptr) {
    if (was_open) ::close(transport->fd);
    return;
  }
  const ExceptionKeeper exception;
  const Ref done(PyObject_CallMethodNoArgs(transport->sock, transport->core->state->names.close));
  if (!done) PyErr_WriteUnraisable(transport->self);
}

PyObject* make(PyTypeObject* type, const Given& given) {
  Ref self(type->tp_alloc(type, 0));
  if (!self) {
    if (given.connection != nullptr) ::close(given.connection->fd);
    return nullptr;
  }
  Transport* const transport = transport_of(self.get());
  if (fill_in(self.get(), given)) return self.release();
  if (given.connection != nullptr) {
    close_socket(transport);
  } else {  // It stays the caller's.
    Py_CLEAR(transport->sock);
    transport->is_open = false;
  }
  return nullptr;
}

PyObject* transport_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  State* const state = state_of_type(type);
  Given given;
  if (state == nullptr || !parse(arguments, keywords, given)) return nullptr;
  if (!PyObject_TypeCheck(given.loop, state->core_type)) {
    PyErr_SetString(PyExc_TypeError, "the loop is not one of spate");
    return nullptr;
  }
  if (!check_open(core_of(given.loop))) return nullptr;
  return make(type, given);
}

// transport_new() has done everything.
int transport_init(PyObject*, PyObject*, PyObject*) { return 0; }

PyObject* transport_start(PyObject* self, PyObject* waiter) {
  Transport* const transport = transport_of(self);
  const State& state = *transport->core->state;
  if (transport->protocol == nullptr) Py_RETURN_NONE;
  const Ref made = call_protocol(transport, state.names.connection_made, self, false);
  Ref exception = take_exception();
  transport->is_started = true;
  if (!transport->is_closing && !transport->is_paused) {
    watch(transport, transport->events | SPATE_READ);
  }
  if (waiter != Py_None) {
    const Ref done(
        PyObject_CallFunctionObjArgs(state.lookups.finish_waiter, waiter, Py_None, nullptr));
    if (!done && !exception) exception = take_exception();
  }
  raise(std::move(exception));
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

void leave_server(Transport* transport) {
  const Ref server(std::exchange(transport->server, nullptr));
  if (!server) return;
  const ExceptionKeeper exception;
  if (!detach(transport, server.get())) PyErr_WriteUnraisable(transport->self);
}

PyObject* transport_call_connection_lost(PyObject* self, PyObject* reason) {
  Transport* const transport = transport_of(self);
  if (!transport->is_open) Py_RETURN_NONE;
  const Ref kept = Ref::copy(self);
  watch(transport, 0);
  Ref result = Ref::copy(Py_None);
  if (transport->is_protocol_connected) {
    result = call_protocol(transport, transport->core->state->names.connection_lost, reason, false);
  }
  close_socket(transport);
  const ExceptionKeeper exception;
  leave_server(transport);
  clear_queue(transport);
  Py_CLEAR(transport->protocol);
  if (transport->empty_waiter != nullptr) {
    const Ref lost(
        PyObject_CallFunction(PyExc_ConnectionError, "s", "Connection is closed by peer"));
    const Ref done(PyObject_CallMethodOneArg(
        transport->empty_waiter, transport->core->state->names.set_exception, lost.get()));
    if (!done) PyErr_Clear();  // It was cancelled, or has failed already.
  }
  let_go(transport);
  return result ? Py_NewRef(Py_None) : nullptr;
}

PyObject* transport_close(PyObject* self, PyObject*) {
  close(transport_of(self));
  Py_RETURN_NONE;
}
PyObject* transport_abort(PyObject* self, PyObject*) {
  settle(transport_of(self));
  force_close(transport_of(self), nullptr);
  Py_RETURN_NONE;
}
PyObject* transport_force_close(PyObject* self, PyObject* exception) {
  settle(transport_of(self));
  force_close(transport_of(self), exception);
  Py_RETURN_NONE;
}
PyObject* transport_fatal_error(PyObject* self, PyObject* arguments) {
  PyObject* exception;
  const char* message = "Fatal error on transport";
  if (!PyArg_ParseTuple(arguments, "O|s", &exception, &message)) return nullptr;
  raise(Ref::copy(exception));
  if (fail(transport_of(self), message) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* transport_can_write_eof(PyObject*, PyObject*) { Py_RETURN_TRUE; }
PyObject* transport_is_closing(PyObject* self, PyObject*) {
  return PyBool_FromLong(transport_of(self)->is_closing);
}
PyObject* transport_is_reading(PyObject* self, PyObject*) {
  return PyBool_FromLong(!transport_of(self)->is_closing && !transport_of(self)->is_paused);
}
PyObject* transport_pause_reading(PyObject* self, PyObject*) {
  Transport* const transport = transport_of(self);
  if (transport->is_closing || transport->is_paused) Py_RETURN_NONE;
  transport->is_paused = true;
  watch(transport, transport->events & ~SPATE_READ);
  Py_RETURN_NONE;
}
PyObject* transport_resume_reading(PyObject* self, PyObject*) {
  Transport* const transport = transport_of(self);
  if (transport->is_closing || !transport->is_paused) Py_RETURN_NONE;
  transport->is_paused = false;
  if (transport->is_started) watch(transport, transport->events | SPATE_READ);
  Py_RETURN_NONE;
}

PyObject* transport_set_protocol(PyObject* self, PyObject* protocol) {
  if (!set_protocol(transport_of(self), protocol)) return nullptr;
  Py_RETURN_NONE;
}
PyObject* or_none(PyObject* object) { return Py_NewRef(object == nullptr ? Py_None : object); }
PyObject* transport_get_protocol(PyObject* self, PyObject*) {
  return or_none(transport_of(self)->protocol);
}

// Returns a closed socket of the same kind. The family is known, as only the sockets of other
// families than the internet's are made at the start.
Ref make_closed_socket(Transport* transport) {
  const State& state = *transport->core->state;
  Ref sock(PyObject_CallFunction(state.lookups.socket, "iii", transport->local.any.sa_family,
                                 SOCK_STREAM, IPPROTO_TCP));
  if (sock && Ref(PyObject_CallMethodNoArgs(sock.get(), state.names.close))) return sock;
  return Ref();
}

PyObject* transport_repr(PyObject* self) {
  Transport* const transport = transport_of(self);
  const char* state = "";
  if (!transport->is_open) {
    state = " closed";
  } else if (transport->is_closing) {
    state = " closing";
  }
  return PyUnicode_FromFormat(
      "<%s%s fd=%d read=%s write=<%s, bufsize=%zu>>", Py_TYPE(self)->tp_name, state, transport->fd,
      (transport->events & SPATE_READ) != 0 ? "polling" : "idle",
      (transport->events & SPATE_WRITE) != 0 ? "polling" : "idle", transport->queued);
}

PyObject* get_sock(PyObject* self, void*) {
  Transport* const transport = transport_of(self);
  return Py_XNewRef(transport->is_open ? socket_of(transport) : Py_None);
}
PyObject* get_fd(PyObject* self, void*) { return PyLong_FromLong(transport_of(self)->fd); }
PyObject* get_loop(PyObject* self, void*) { return Py_NewRef(as_object(transport_of(self)->core)); }
PyObject* get_protocol(PyObject* self, void*) { return or_none(transport_of(self)->protocol); }
PyObject* get_server(PyObject* self, void*) { return or_none(transport_of(self)->server); }
PyObject* get_lost(PyObject* self, void*) { return PyLong_FromLong(transport_of(self)->lost); }
PyObject* get_paused(PyObject* self, void*) {
  return PyBool_FromLong(transport_of(self)->is_protocol_paused);
}
PyObject* get_closing(PyObject* self, void*) { return transport_is_closing(self, nullptr); }
PyObject* get_eof(PyObject* self, void*) {
  return PyBool_FromLong(transport_of(self)->has_written_eof);
}
PyObject* get_tls_compatible(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* get_sendfile_mode(PyObject* self, void*) {
  return Py_NewRef(transport_of(self)->core->state->lookups.sendfile_mode);
}

PyMethodDef methods[] = {
    {"get_extra_info", as_method(transport_get_extra_info), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_start", transport_start, METH_O, nullptr},
    {"_call_connection_lost", transport_call_connection_lost, METH_O, nullptr},
    {"_force_close", transport_force_close, METH_O, nullptr},
    {"_fatal_error", transport_fatal_error, METH_VARARGS, nullptr},
    {"write", transport_write, METH_O, nullptr},
    {"writelines", transport_writelines, METH_O, nullptr},
    {"write_eof", transport_write_eof, METH_NOARGS, nullptr},
    {"can_write_eof", transport_can_write_eof, METH_NOARGS, nullptr},
    {"close", transport_close, METH_NOARGS, nullptr},
    {"abort", transport_abort, METH_NOARGS, nullptr},
    {"is_closing", transport_is_closing, METH_NOARGS, nullptr},
    {"is_reading", transport_is_reading, METH_NOARGS, nullptr},
    {"pause_reading", transport_pause_reading, METH_NOARGS, nullptr},
    {"resume_reading", transport_resume_reading, METH_NOARGS, nullptr},
    {"set_protocol", transport_set_protocol, METH_O, nullptr},
    {"get_protocol", transport_get_protocol, METH_NOARGS, nullptr},
    {"get_write_buffer_size", transport_get_write_buffer_size, METH_NOARGS, nullptr},
    {"get_write_buffer_limits", transport_get_write_buffer_limits, METH_NOARGS, nullptr},
    {"set_write_buffer_limits", as_method(transport_set_write_buffer_limits),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_make_empty_waiter", transport_make_empty_waiter, METH_NOARGS, nullptr},
    {"_reset_empty_waiter", transport_reset_empty_waiter, METH_NOARGS, nullptr},
    {}};
PyGetSetDef attributes[] = {
    {"_extra", transport_get_extra, nullptr, nullptr, nullptr},
    {"_sock", get_sock, nullptr, nullptr, nullptr},
    {"_sock_fd", get_fd, nullptr, nullptr, nullptr},
    {"_loop", get_loop, nullptr, nullptr, nullptr},
    {"_protocol", get_protocol, nullptr, nullptr, nullptr},
    {"_server", get_server, nullptr, nullptr, nullptr},
    {"_conn_lost", get_lost, nullptr, nullptr, nullptr},
    {"_protocol_paused", get_paused, nullptr, nullptr, nullptr},
    {"_closing", get_closing, nullptr, nullptr, nullptr},
    {"_eof", get_eof, nullptr, nullptr, nullptr},
    {"_start_tls_compatible", get_tls_compatible, nullptr, nullptr, nullptr},
    {"_sendfile_compatible", get_sendfile_mode, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

int transport_traverse(PyObject* self, visitproc visit, void* arg) {
  Transport* const transport = transport_of(self);
  Py_VISIT(Py_TYPE(self));
  if (const int result = visit_base(self, visit, arg)) return result;
  Py_VISIT(reinterpret_cast<PyObject*>(transport->core));
  Py_VISIT(transport->protocol);
  Py_VISIT(transport->sock);
  Py_VISIT(transport->server);
  Py_VISIT(transport->context);
  Py_VISIT(transport->extra);
  Py_VISIT(transport->empty_waiter);
  Py_VISIT(transport->dict);
  return 0;
}

int transport_clear(PyObject* self) {
  Transport* const transport = transport_of(self);
  clear_base(self);
  if (transport->core != nullptr && transport->core->loop != nullptr) spate_io_stop(&transport->io);
  Py_CLEAR(transport->protocol);
  Py_CLEAR(transport->server);
  Py_CLEAR(transport->empty_waiter);
  Py_CLEAR(transport->dict);
  return 0;
}

void transport_finalize(PyObject* self) {
  Transport* const transport = transport_of(self);
  if (transport->core == nullptr || !transport->is_open) return;
  const ExceptionKeeper exception;
  if (PyErr_ResourceWarning(self, 1, "unclosed transport %R", self) < 0) {
    PyErr_WriteUnraisable(self);
  }
  close_socket(transport);
  leave_server(transport);
}

void transport_dealloc(PyObject* self) {
  Transport* const transport = transport_of(self);
  PyTypeObject* const type = Py_TYPE(self);
  if (PyObject_CallFinalizerFromDealloc(self) < 0) return;  // The finalizer revived it.
  PyObject_GC_UnTrack(self);
  leave_table(transport);
  if (transport->weak != nullptr) PyObject_ClearWeakRefs(self);
  transport_clear(self);
  clear_queue(transport);
  transport->queue.free();
  Py_CLEAR(transport->sock);
  Py_CLEAR(transport->context);
  Py_CLEAR(transport->extra);
  if (transport->core != nullptr) Py_DECREF(as_object(transport->core));
  type->tp_free(self);
  Py_DECREF(type);
}

const PyType_Slot kSlots[] = {
    {Py_tp_new, as_slot(transport_new)},
    {Py_tp_init, as_slot(transport_init)},
    {Py_tp_dealloc, as_slot(transport_dealloc)},
    {Py_tp_finalize, as_slot(transport_finalize)},
    {Py_tp_traverse, as_slot(transport_traverse)},
    {Py_tp_clear, as_slot(transport_clear)},
    {Py_tp_repr, as_slot(transport_repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {}};
const PyMemberDef kMembers[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Transport, weak), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Transport, dict), READONLY, nullptr},
    {}};

}  // namespace

PyTypeObject* make_transport_type(PyObject* module) {
  return derive(module, {"spate._core.SocketTransport", "_FlowControlMixin", sizeof(Transport),
                         kSlots, kMembers});
}

Ref make_transport(Core* core, const Connection& connection) {
  Given given;
  given.loop = as_object(core);
  given.protocol = connection.protocol;
  given.waiter = connection.waiter;
  given.server = connection.server;
  given.connection = &connection;
  return Ref(make(core->state->transport_type, given));
}

PyObject* socket_of(Transport* transport) {
  if (transport->sock != nullptr) return transport->sock;
  const State& state = *transport->core->state;
  if (!transport->is_open) return transport->sock = make_closed_socket(transport).release();
  Ref sock(
      PyObject_CallFunction(state.lookups.socket, "iiii", -1, -1, transport->proto, transport->fd));
  if (!sock) return nullptr;
  // The descriptor does not block already, but the object does not know.
  const Ref done(PyObject_CallMethodOneArg(sock.get(), state.names.setblocking, Py_False));
  if (done) return transport->sock = sock.release();
  const ExceptionKeeper exception;
  const Ref detached(PyObject_CallMethod(sock.get(), "detach", nullptr));
  return nullptr;
}

void watch(Transport* transport, std::uint32_t events) {
  if (transport->events == events || transport->core->loop == nullptr) return;
  transport->events = events;
  if (events == 0) {
    spate_io_stop(&transport->io);
  } else if (spate_is_active(&transport->io.watcher)) {
    spate_io_modify(&transport->io, events);
  } else {
    spate_io_set(&transport->io, transport->fd, events);
    spate_io_start(&transport->io);
  }
}

void hold(Transport* transport) {
  if (transport->is_held) return;
  transport->is_held = true;
  Py_INCREF(transport->self);
  Core* const core = transport->core;
  transport->next = core->held;
  if (core->held != nullptr) core->held->previous = transport;
  core->held = transport;
}

void release_held(Core* core) {
  while (core->held != nullptr) let_go(core->held);
}

int visit_held(Core* core, visitproc visit, void* arg) {
  for (Transport* held = core->held; held != nullptr; held = held->next) Py_VISIT(held->self);
  return 0;
}

bool call_later_turn(Transport* transport, PyObject* method, PyObject* argument) {
  Core* const core = transport->core;
  if (core->is_closed) return true;
  const Ref callable(PyObject_GetAttr(transport->self, method));
  if (!callable || !core->ready.reserve()) return false;
  PyObject* const call[] = {callable.get(), argument};
  Handle* const handle = make_handle(core, call, 2, transport->context);
  return handle != nullptr && core->ready.push(handle);
}

void force_close(Transport* transport, PyObject* exception) {
  if (transport->lost > 0 || !transport->is_open) return;
  clear_queue(transport);
  watch(transport, 0);
  transport->is_closing = true;
  ++transport->lost;
  call_later_turn(transport, transport->core->state->names.call_connection_lost,
                  exception == nullptr ? Py_None : exception);
}

void close(Transport* transport) {
  if (transport->is_closing) return;
  settle(transport);
  if (transport->is_closing) return;
  transport->is_closing = true;
  watch(transport, transport->events & ~SPATE_READ);
  if (transport->queue.size() > 0) return;
  ++transport->lost;
  watch(transport, 0);
  call_later_turn(transport, transport->core->state->names.call_connection_lost, Py_None);
}

int fail(Transport* transport, const char* message) {
  Ref exception = take_exception();
  int result = 0;
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_OSError)) {
    raise(Ref::copy(exception.get()));
    result = report(transport->core, message, nullptr, transport->self);
  }
  const ExceptionKeeper keeper;
  force_close(transport, exception.get());
  return result;
}

Ref call_protocol(Transport* transport, PyObject* name, PyObject* argument, bool in_context) {
  const Ref protocol = Ref::copy(transport->protocol);
  if (!protocol) return Ref::copy(Py_None);
  const Ref context = Ref::copy(transport->context);
  if (in_context && PyContext_Enter(context.get()) < 0) return Ref();
  PyObject* const call[] = {protocol.get(), argument};
  Ref result(PyObject_VectorcallMethod(name, call, argument == nullptr ? 1 : 2, nullptr));
  if (!in_context) return result;
  if (result) {
    PyContext_Exit(context.get());
  } else {
    const ExceptionKeeper exception;
    PyContext_Exit(context.get());
  }
  return result;
}

}  // namespace pyspate
