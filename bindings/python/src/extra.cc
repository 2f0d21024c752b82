// The extra info of a transport. Most of it is made when a program asks.
#include "transport.h"

namespace pyspate {
namespace {

// Puts the result of the socket's method into the extra info; None if it fails.
bool add_address(Transport* transport, PyObject* method, PyObject* name) {
  PyObject* const sock = socket_of(transport);
  if (sock == nullptr) return false;
  Ref address(PyObject_CallMethodNoArgs(sock, method));
  if (!address) {
    if (!PyErr_ExceptionMatches(PyExc_OSError)) return false;
    PyErr_Clear();
    address = Ref::copy(Py_None);
  }
  return PyDict_SetItem(transport->extra, name, address.get()) == 0;
}

// Keeps the addresses, as a socket has none after its connection. An internet address becomes
// Python's when a program asks.
bool keep_addresses(Transport* transport) {
  const Names& names = transport->core->state->names;
  if (!ask(transport->fd, getsockname, &transport->local) &&
      !add_address(transport, names.getsockname, names.sockname)) {
    return false;
  }
  const int has_peer = PyDict_Contains(transport->extra, names.peername);
  if (has_peer != 0) return has_peer > 0;
  if (transport->peer.is_internet()) return true;
  return ask(transport->fd, getpeername, &transport->peer) ||
         add_address(transport, names.getpeername, names.peername);
}

// Makes one of the values that are made when they are asked for; null if it is none of them.
Ref make_extra(Transport* transport, PyObject* name) {
  const State& state = *transport->core->state;
  const auto is = [name](PyObject* other) {
    return name == other || PyUnicode_Compare(name, other) == 0;
  };
  if (!PyUnicode_Check(name)) return Ref();
  if (is(state.names.socket)) {
    PyObject* const sock = socket_of(transport);
    if (sock == nullptr) return Ref();
    return Ref(PyObject_CallOneArg(state.lookups.socket_view, sock));
  }
  if (is(state.names.peername) && transport->peer.is_internet()) return to_python(transport->peer);
  if (is(state.names.sockname) && transport->local.is_internet()) {
    return to_python(transport->local);
  }
  return Ref();
}

// Returns a borrowed reference, or null, also if an exception is set.
PyObject* find_extra(Transport* transport, PyObject* name) {
  PyObject* const known = PyDict_GetItemWithError(transport->extra, name);
  if (known != nullptr || PyErr_Occurred()) return known;
  const Ref made = make_extra(transport, name);
  if (!made || PyDict_SetItem(transport->extra, name, made.get()) < 0) return nullptr;
  return PyDict_GetItemWithError(transport->extra, name);
}

}  // namespace

bool set_extra(Transport* transport, PyObject* given) {
  transport->extra = given == Py_None ? PyDict_New() : Py_NewRef(given);
  return transport->extra != nullptr && keep_addresses(transport);
}

PyObject* transport_get_extra_info(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"name", "default", nullptr};
  PyObject *name, *otherwise = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O", const_cast<char**>(names), &name,
                                   &otherwise)) {
    return nullptr;
  }
  PyObject* const found = find_extra(transport_of(self), name);
  if (found == nullptr && PyErr_Occurred()) return nullptr;
  return Py_NewRef(found == nullptr ? otherwise : found);
}

PyObject* transport_get_extra(PyObject* self, void*) {
  Transport* const transport = transport_of(self);
  const Names& names = transport->core->state->names;
  for (PyObject* name : {names.socket, names.sockname, names.peername}) {
    if (find_extra(transport, name) == nullptr && PyErr_Occurred()) return nullptr;
  }
  return Py_NewRef(transport->extra);
}

}  // namespace pyspate
