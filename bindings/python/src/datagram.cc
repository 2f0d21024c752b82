// Receiving and sending of datagrams, by sockets of the internet and of the file system.
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "address.h"
#include "engine.h"
#include "transport.h"

namespace pyspate {
namespace {

constexpr int kBurst = 16;  // Datagrams of one event.
// After this many events with one datagram, the next reads until the kernel has no more.
constexpr unsigned kReadsBeforeProbe = 16;

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

// The address of a datagram's sender.
union Sender {
  sockaddr any;
  Address internet;
  sockaddr_un path;
};

// Returns whether senders of this kind of socket are known to to_python().
bool is_usual(Engine* engine, int fd) {
  if (engine->family == 0) {
    socklen_t size = sizeof engine->family;
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &engine->family, &size);
  }
  return engine->family == AF_INET || engine->family == AF_INET6 || engine->family == AF_UNIX;
}

// Returns a sender's address as Python's sockets do.
Ref to_python(Core* core, const Sender& sender, socklen_t size) {
  if (size == 0) return Ref::copy(Py_None);
  if (sender.any.sa_family != AF_UNIX) return core->addresses.find_tuple(sender.internet);
  const std::size_t length = size - offsetof(sockaddr_un, sun_path);
  if (length > 0 && sender.path.sun_path[0] == 0) {
    return Ref(PyBytes_FromStringAndSize(sender.path.sun_path, static_cast<Py_ssize_t>(length)));
  }
  const std::size_t used = ::strnlen(sender.path.sun_path, length);
  return Ref(PyUnicode_DecodeFSDefaultAndSize(sender.path.sun_path,
                                              static_cast<Py_ssize_t>(used)));
}

// ---- receiving

bool may_read_on(Engine* engine) {
  if (engine->lost != 0 || engine->is_closing || engine->is_paused) return false;
  const Core* const core = usual_core(engine);
  return core != nullptr && !core->is_stopping;
}

// Calls error_received() with the current exception.
bool report_error(Engine* engine) {
  const Ref exception = take_exception();
  const Ref protocol = Ref::copy(engine->protocol);
  return static_cast<bool>(Ref(PyObject_CallMethodOneArg(
      protocol.get(), engine->state->names.error_received, exception.get())));
}

bool deliver(Engine* engine, PyObject* data, PyObject* address) {
  const Ref protocol = Ref::copy(engine->protocol);
  PyObject* const call[] = {protocol.get(), data, address};
  return static_cast<bool>(Ref(PyObject_VectorcallMethod(engine->state->names.datagram_received,
                                                         call, 3, nullptr)));
}

enum class Read { done, nothing, failed };

Read read_one(Engine* engine, Core* core, int fd) {
  Sender from;
  socklen_t length = sizeof from;
  const ssize_t size = ::recvfrom(fd, core->read_buffer, kReadBuffer, 0, &from.any, &length);
  if (size < 0 && would_block(errno)) return Read::nothing;
  if (size < 0) {
    raise_errno(errno);
    return report_error(engine) ? Read::done : Read::failed;
  }
  const Ref data(PyBytes_FromStringAndSize(core->read_buffer, size));
  const Ref address = to_python(core, from, length);
  const bool is_made = data && address;
  return is_made && deliver(engine, data.get(), address.get()) ? Read::done : Read::failed;
}

// Reads on while bursts arrive. To look for a datagram that is not there costs a system call, so
// this is tried seldom if datagrams arrive one at a time.
bool read_burst(Engine* engine, Core* core, int fd) {
  int count = 0;
  Read read = Read::done;
  while (read == Read::done) {
    read = read_one(engine, core, fd);
    if (read == Read::done) ++count;
    if (read != Read::done || !engine->reads_bursts || count == kBurst || !may_read_on(engine)) {
      break;
    }
    if (core->written.size() > 0) flush_written(core);
  }
  if (count > 1) {
    engine->single_reads = 0;
  } else {
    engine->reads_bursts = ++engine->single_reads % kReadsBeforeProbe == 0;
  }
  return read != Read::failed;
}

PyObject* datagram_read_ready(PyObject* self, PyObject*) {
  Engine* const engine = engine_of(self);
  if (engine->lost != 0) Py_RETURN_NONE;
  Core* const core = usual_core(engine);
  const int fd = descriptor_of(engine);
  if (core == nullptr || fd < 0 || !is_usual(engine, fd)) {
    return PyObject_CallOneArg(engine->state->lookups.datagram_read_ready, self);
  }
  const Ref kept = Ref::copy(self);
  const Ref loop = Ref::copy(as_object(core));
  return read_burst(engine, core, fd) ? Py_NewRef(Py_None) : nullptr;
}

// ---- sending

struct Target {
  const Address* address;  // Null if the socket is connected.
  bool is_known;
};

// Finds the target of a datagram for sendto(..., given), which is null if there was no such
// argument.
Target find_target(Engine* engine, Core* core, PyObject* given) {
  const bool has_address = engine->address != nullptr && engine->address != Py_None;
  if (given == Py_None) given = nullptr;
  if (has_address) {
    if (given != nullptr && given != engine->address) return {};
    given = engine->address;
  }
  if (engine->extra == nullptr || !PyDict_Check(engine->extra)) return {};
  PyObject* const peer = PyDict_GetItemWithError(engine->extra, engine->state->names.peername);
  if (peer == nullptr) {
    PyErr_Clear();
    return {};
  }
  const int is_connected = PyObject_IsTrue(peer);
  if (is_connected < 0) PyErr_Clear();
  if (is_connected != 0) return {nullptr, is_connected > 0};
  if (given == nullptr) return {};
  const Address* const address = core->addresses.find_address(given, engine->family);
  return {address, address != nullptr};
}

// Sends the data. Returns false without an exception if asyncio's method has to.
bool send_now(Engine* engine, int fd, PyObject* data, const Address* address) {
  Py_buffer view;
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();  // It is not contiguous.
    return false;
  }
  ssize_t sent = -1;
  int error = EAGAIN;
  if (view.len > 0) {  // The versions of asyncio differ in empty ones.
    const auto size = static_cast<std::size_t>(view.len);
    const socklen_t length = engine->family == AF_INET ? sizeof address->v4 : sizeof address->v6;
    sent = address == nullptr ? ::send(fd, view.buf, size, MSG_NOSIGNAL)
                              : ::sendto(fd, view.buf, size, MSG_NOSIGNAL, &address->any, length);
    error = errno;
  }
  PyBuffer_Release(&view);
  if (sent >= 0) return true;
  if (would_block(error)) return false;
  raise_errno(error);
  return report_error(engine);
}

bool is_bytes_like(PyObject* data) {
  return PyBytes_Check(data) || PyByteArray_Check(data) || PyMemoryView_Check(data);
}

bool try_to_send(PyObject* self, PyObject* data, PyObject* given) {
  Engine* const engine = engine_of(self);
  Core* const core = usual_core(engine);
  const int fd = descriptor_of(engine);
  if (core == nullptr || fd < 0 || engine->lost != 0 || !is_bytes_like(data) ||
      !is_usual(engine, fd) || has_buffer(engine)) {
    return false;
  }
  const Target target = find_target(engine, core, given);
  if (!target.is_known) return false;
  if (target.address == nullptr) return send_now(engine, fd, data, nullptr);
  // Python's method of the socket raises the same event.
  PyObject* const sock = engine->file == nullptr ? Py_None : engine->file;
  PyObject* const shown = given == nullptr || given == Py_None ? engine->address : given;
  const Address address = *target.address;
  if (PySys_Audit("socket.sendto", "OO", sock, shown) < 0) return false;
  return send_now(engine, fd, data, &address);
}

PyObject* datagram_sendto(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names) {
  const Ref kept = Ref::copy(self);
  if (names == nullptr && (size == 1 || size == 2)) {
    if (try_to_send(self, arguments[0], size == 2 ? arguments[1] : nullptr)) Py_RETURN_NONE;
    if (PyErr_Occurred()) return nullptr;
  }
  Array<PyObject*> call{};
  const Py_ssize_t all = size + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
  bool is_pushed = call.push(self);
  for (Py_ssize_t i = 0; i < all && is_pushed; ++i) is_pushed = call.push(arguments[i]);
  PyObject* const result =
      is_pushed ? PyObject_Vectorcall(engine_of(self)->state->lookups.datagram_sendto, call.begin(),
                                      static_cast<std::size_t>(size) + 1, names)
                : nullptr;
  call.free();
  return result;
}

// ---- the type

PyMethodDef methods[] = {
    {"_read_ready", datagram_read_ready, METH_NOARGS, nullptr},
    {"sendto", as_method(datagram_sendto), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {}};
const PyMemberDef kMembers[] = {
    {"_loop", T_OBJECT, offsetof(Engine, loop), 0, nullptr},
    {"_protocol", T_OBJECT, offsetof(Engine, protocol), 0, nullptr},
    {"_sock", T_OBJECT, offsetof(Engine, file), 0, nullptr},
    {"_sock_fd", T_OBJECT, offsetof(Engine, descriptor), 0, nullptr},
    {"_buffer", T_OBJECT, offsetof(Engine, buffer), 0, nullptr},
    {"_extra", T_OBJECT, offsetof(Engine, extra), 0, nullptr},
    {"_address", T_OBJECT, offsetof(Engine, address), 0, nullptr},
    {"_conn_lost", T_INT, offsetof(Engine, lost), 0, nullptr},
    {"_closing", T_BOOL, offsetof(Engine, is_closing), 0, nullptr},
    {"_paused", T_BOOL, offsetof(Engine, is_paused), 0, nullptr},
    {}};

}  // namespace

PyTypeObject* make_datagram_engine_type(PyObject* module) {
  return derive_engine(module, "spate._core.DatagramEngine", "_FlowControlMixin", methods,
                       kMembers);
}

}  // namespace pyspate
