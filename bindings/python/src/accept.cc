// Accepting connections without a Task for each.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core.h"
#include "transport.h"

namespace pyspate {
namespace {

struct Listener {
  PyObject* factory;
  PyObject* sock;
  PyObject* server;
  int backlog;
  int proto;
};

// Returns the attribute `proto` of a socket; -1 if it has none.
int proto_of(PyObject* sock) {
  const Ref number(PyObject_GetAttrString(sock, "proto"));
  const long proto = number ? PyLong_AsLong(number.get()) : -1;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return static_cast<int>(proto);
}

// Starts the connection. Its errors are lost, as asyncio's are outside of debug mode.
int start(Core* core, const Listener& listener, int fd, const Address& peer) {
  const Ref protocol(PyObject_CallNoArgs(listener.factory));
  if (!protocol) ::close(fd);
  if (protocol && make_transport(core, {.fd = fd,
                                        .peer = peer,
                                        .proto = listener.proto,
                                        .protocol = protocol.get(),
                                        .server = listener.server})) {
    return 0;
  }
  if (is_exit()) return -1;
  PyErr_Clear();
  return 0;
}

}  // namespace

// _accept(factory, socket, server, backlog): returns False if asyncio's own method is needed.
PyObject* core_accept(PyObject* self, PyObject* arguments) {
  Listener listener{};
  if (!PyArg_ParseTuple(arguments, "OOOi", &listener.factory, &listener.sock, &listener.server,
                        &listener.backlog)) {
    return nullptr;
  }
  const int listening = PyObject_AsFileDescriptor(listener.sock);
  if (listening < 0) return nullptr;
  listener.proto = proto_of(listener.sock);
  for (int i = 0; i < listener.backlog; ++i) {
    Address peer{};
    socklen_t size = sizeof peer;
    const int fd = ::accept4(listening, &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      const bool is_usual = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
      return PyBool_FromLong(is_usual);
    }
    if (start(core_of(self), listener, fd, peer) < 0) return nullptr;
  }
  Py_RETURN_TRUE;
}

}  // namespace pyspate
