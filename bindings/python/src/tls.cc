// The fast paths of asyncio's SSLProtocol: receiving and sending on an established connection. The
// state machine stays asyncio's; its attributes are fields here.
#include "core.h"
#include "openssl.h"
#include "transport.h"

namespace pyspate {
namespace {

struct TlsEngine {
  PyObject_HEAD State* state;
  void* ssl;  // Null until it is needed.
  bool has_no_ssl;
  // Attributes of SSLProtocol.
  PyObject* loop;
  PyObject* state_value;
  PyObject* object;
  PyObject* transport;
  PyObject* app_protocol;
  PyObject* write_backlog;
  PyObject* buffer_view;
  char is_writing_paused;
  char is_app_reading_paused;
  char is_app_writing_paused;
  char is_reading_paused;
  char is_app_buffered;
};

TlsEngine* of(PyObject* self) { return reinterpret_cast<TlsEngine*>(self); }
PyObject* as_object(TlsEngine* engine) { return reinterpret_cast<PyObject*>(engine); }

PyObject* engine_new(PyTypeObject* type, PyObject*, PyObject*) {
  State* const state = state_of_type(type);
  PyObject* const self = state == nullptr ? nullptr : type->tp_alloc(type, 0);
  if (self != nullptr) of(self)->state = state;
  return self;
}

bool is_established(TlsEngine* engine) {
  return engine->state_value == engine->state->lookups.tls_established && !engine->has_no_ssl &&
         engine->transport != nullptr && engine->transport != Py_None;
}

// Returns whether the SSL is known, after it was looked for if need be.
bool has_ssl(TlsEngine* engine) {
  if (engine->ssl != nullptr) return true;
  engine->ssl = ssl_of(engine->state->openssl, engine->object);
  engine->has_no_ssl =
      engine->ssl == nullptr || !PyObject_TypeCheck(engine->loop, engine->state->core_type);
  return !engine->has_no_ssl;
}

bool has_backlog(TlsEngine* engine) {
  const Py_ssize_t size =
      engine->write_backlog == nullptr ? 0 : PyObject_Size(engine->write_backlog);
  if (size < 0) PyErr_Clear();
  return size != 0;
}

// Calls a method of SSLProtocol that has no arguments. Returns whether it has succeeded.
bool call_method(TlsEngine* engine, PyObject* name) {
  return static_cast<bool>(Ref(PyObject_CallMethodNoArgs(as_object(engine), name)));
}

// Ends the connection because of the exception that is set, as SSLProtocol does.
PyObject* fail_connection(TlsEngine* engine) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  const Ref exception = take_exception();
  return PyObject_CallMethod(as_object(engine), "_fatal_error", "Os", exception.get(),
                             "Fatal error on SSL protocol");
}

// ---- receiving

enum class Found { nothing, data, other };

// Decrypts up to a full buffer of the loop. `size` says how much.
Found decrypt(TlsEngine* engine, int* size) {
  const OpenSsl& openssl = engine->state->openssl;
  char* const buffer = core_of(engine->loop)->read_buffer;
  void* const incoming = openssl.get_read_bio(engine->ssl);
  *size = 0;
  while (*size < static_cast<int>(kReadBuffer)) {
    const int part =
        openssl.read(engine->ssl, buffer + *size, static_cast<int>(kReadBuffer) - *size);
    if (part <= 0) {
      return openssl.get_error(engine->ssl, part) == kWantsRead ? Found::nothing : Found::other;
    }
    *size += part;
    if (openssl.bio_pending(incoming) == 0 && openssl.pending(engine->ssl) == 0) {
      return Found::nothing;
    }
  }
  return Found::data;
}

bool deliver(TlsEngine* engine, int size) {
  const Ref data(PyBytes_FromStringAndSize(core_of(engine->loop)->read_buffer, size));
  const Ref protocol = Ref::copy(engine->app_protocol);
  return data && Ref(PyObject_CallMethodOneArg(protocol.get(), engine->state->names.data_received,
                                               data.get()));
}

// After reading: what SSLProtocol does, but only if there is something to do.
bool finish_reading(TlsEngine* engine) {
  const OpenSsl& openssl = engine->state->openssl;
  const Names& names = engine->state->names;
  if (!is_established(engine)) return true;
  if (has_backlog(engine)) {
    if (!call_method(engine, names.do_write)) return false;
  } else if (openssl.bio_pending(openssl.get_write_bio(engine->ssl)) > 0 &&
             !call_method(engine, names.process_outgoing)) {
    return false;
  }
  const bool is_left = openssl.bio_pending(openssl.get_read_bio(engine->ssl)) > 0;
  return !(is_left || engine->is_reading_paused) || call_method(engine, names.control_ssl_reading);
}

bool read_all(TlsEngine* engine) {
  Found found = Found::data;
  while (found == Found::data && is_established(engine) && !engine->is_app_reading_paused) {
    int size;
    found = decrypt(engine, &size);
    if (size > 0 && !deliver(engine, size)) return false;
  }
  // An end or an error: SSLProtocol meets it again.
  if (found == Found::other) return call_method(engine, engine->state->names.do_read);
  return finish_reading(engine);
}

PyObject* engine_get_buffer(PyObject* self, PyObject*) {
  PyObject* const view = of(self)->buffer_view;
  return Py_NewRef(view == nullptr ? Py_None : view);
}

PyObject* engine_buffer_updated(PyObject* self, PyObject* count) {
  TlsEngine* const engine = of(self);
  const State& state = *engine->state;
  const int size = static_cast<int>(PyLong_AsLong(count));
  if (size < 0) return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
  if (!is_established(engine) || engine->is_app_reading_paused || engine->is_app_buffered ||
      !has_ssl(engine)) {
    return PyObject_CallFunctionObjArgs(state.lookups.tls_buffer_updated, self, count, nullptr);
  }
  Py_buffer view;
  if (PyObject_GetBuffer(engine->buffer_view, &view, PyBUF_SIMPLE) < 0) return nullptr;
  const int taken =
      state.openssl.bio_write(state.openssl.get_read_bio(engine->ssl), view.buf, size);
  PyBuffer_Release(&view);
  if (taken != size) return PyErr_NoMemory();
  const Ref kept = Ref::copy(self);
  if (read_all(engine)) Py_RETURN_NONE;
  return fail_connection(engine);
}

// ---- sending

// Encrypts all of it. Returns how much was.
Py_ssize_t encrypt(TlsEngine* engine, const Py_buffer& data) {
  constexpr Py_ssize_t kMost = 1 << 30;
  Py_ssize_t done = 0;
  while (done < data.len) {
    const Py_ssize_t left = data.len - done;
    const int size =
        engine->state->openssl.write(engine->ssl, static_cast<const char*>(data.buf) + done,
                                     static_cast<int>(left < kMost ? left : kMost));
    if (size <= 0) break;
    done += size;
  }
  return done;
}

bool write_encrypted(TlsEngine* engine) {
  const OpenSsl& openssl = engine->state->openssl;
  void* const outgoing = openssl.get_write_bio(engine->ssl);
  const auto size = static_cast<Py_ssize_t>(openssl.bio_pending(outgoing));
  if (size == 0) return true;
  const Ref bytes(PyBytes_FromStringAndSize(nullptr, size));
  if (!bytes) return false;
  openssl.bio_read(outgoing, PyBytes_AS_STRING(bytes.get()), static_cast<int>(size));
  const Ref transport = Ref::copy(engine->transport);
  if (Py_TYPE(transport.get()) == engine->state->transport_type) {
    return static_cast<bool>(Ref(transport_write(transport.get(), bytes.get())));
  }
  return static_cast<bool>(
      Ref(PyObject_CallMethodOneArg(transport.get(), engine->state->names.write, bytes.get())));
}

// Hands the data over to SSLProtocol.
PyObject* write_slowly(TlsEngine* engine, PyObject* data) {
  const Ref pieces(PyTuple_Pack(1, data));
  if (!pieces) return nullptr;
  return PyObject_CallMethodOneArg(as_object(engine), engine->state->names.write_appdata,
                                   pieces.get());
}

PyObject* engine_write(PyObject* self, PyObject* data) {
  TlsEngine* const engine = of(self);
  if (!PyBytes_Check(data) && !PyByteArray_Check(data) && !PyMemoryView_Check(data)) {
    PyErr_Format(PyExc_TypeError, "data: expecting a bytes-like instance, got %s",
                 Py_TYPE(data)->tp_name);
    return nullptr;
  }
  const int truth = PyObject_IsTrue(data);
  if (truth <= 0) return truth < 0 ? nullptr : Py_NewRef(Py_None);
  if (!is_established(engine) || engine->is_writing_paused || engine->is_app_writing_paused ||
      has_backlog(engine) || !has_ssl(engine)) {
    return write_slowly(engine, data);
  }
  Py_buffer view;
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();  // It is not contiguous.
    return write_slowly(engine, data);
  }
  const Py_ssize_t done = encrypt(engine, view);
  const Ref rest(
      done == view.len
          ? nullptr
          : PyBytes_FromStringAndSize(static_cast<const char*>(view.buf) + done, view.len - done));
  const bool is_all = done == view.len;
  PyBuffer_Release(&view);
  if (!is_all) return rest ? write_slowly(engine, rest.get()) : nullptr;
  return write_encrypted(engine) ? Py_NewRef(Py_None) : fail_connection(engine);
}

// ---- the type

constexpr std::size_t kObjects[] = {
    offsetof(TlsEngine, loop),         offsetof(TlsEngine, state_value),
    offsetof(TlsEngine, object),       offsetof(TlsEngine, transport),
    offsetof(TlsEngine, app_protocol), offsetof(TlsEngine, write_backlog),
    offsetof(TlsEngine, buffer_view)};

PyObject*& field(PyObject* self, std::size_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + offset);
}

int engine_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const std::size_t offset : kObjects) Py_VISIT(field(self, offset));
  return 0;
}

int engine_clear(PyObject* self) {
  of(self)->ssl = nullptr;
  of(self)->has_no_ssl = true;
  for (const std::size_t offset : kObjects) Py_CLEAR(field(self, offset));
  return 0;
}

PyMethodDef methods[] = {{"get_buffer", engine_get_buffer, METH_O, nullptr},
                         {"buffer_updated", engine_buffer_updated, METH_O, nullptr},
                         {"_write", engine_write, METH_O, nullptr},
                         {}};
PyMemberDef members[] = {
    {"_loop", T_OBJECT, offsetof(TlsEngine, loop), 0, nullptr},
    {"_state", T_OBJECT, offsetof(TlsEngine, state_value), 0, nullptr},
    {"_sslobj", T_OBJECT, offsetof(TlsEngine, object), 0, nullptr},
    {"_transport", T_OBJECT, offsetof(TlsEngine, transport), 0, nullptr},
    {"_app_protocol", T_OBJECT, offsetof(TlsEngine, app_protocol), 0, nullptr},
    {"_write_backlog", T_OBJECT, offsetof(TlsEngine, write_backlog), 0, nullptr},
    {"_ssl_buffer_view", T_OBJECT, offsetof(TlsEngine, buffer_view), 0, nullptr},
    {"_ssl_writing_paused", T_BOOL, offsetof(TlsEngine, is_writing_paused), 0, nullptr},
    {"_app_reading_paused", T_BOOL, offsetof(TlsEngine, is_app_reading_paused), 0, nullptr},
    {"_app_writing_paused", T_BOOL, offsetof(TlsEngine, is_app_writing_paused), 0, nullptr},
    {"_ssl_reading_paused", T_BOOL, offsetof(TlsEngine, is_reading_paused), 0, nullptr},
    {"_app_protocol_is_buffer", T_BOOL, offsetof(TlsEngine, is_app_buffered), 0, nullptr},
    {}};
PyType_Slot slots[] = {{Py_tp_new, as_slot(engine_new)},
                       {Py_tp_dealloc, as_slot(dealloc_cleared<engine_clear>)},
                       {Py_tp_traverse, as_slot(engine_traverse)},
                       {Py_tp_clear, as_slot(engine_clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {}};
PyType_Spec spec = {"spate._core.TlsEngine", sizeof(TlsEngine), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

PyTypeObject* make_tls_engine_type(PyObject* module) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace pyspate
