#include "cycle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "scope.h"
#include "waiting.h"

namespace spate_server {

using spate::Bytes;
using spate::http::Exchange;
using spate::http::Fields;
using spate::http::Status;

// The C++ half: the request's body that waits for receive(), and the state of the response.
class Body final : public spate::http::ExchangeHandler {
 public:
  // More than this is not read ahead of the application.
  static constexpr std::size_t kAhead = 64 * 1024;
  // A response is passed on in pieces of this size, so that a large one is not queued twice.
  static constexpr std::size_t kPiece = 256 * 1024;

  Body(Cycle* owner, Exchange&& its) : cycle(owner), exchange(std::move(its)) {}

  void on_body(Bytes bytes) override;
  void on_body_end(const spate::http::FieldsView& trailers) override;
  void on_client_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // Sets this as the handler, once. From then on the Cycle keeps itself.
  void watch();
  bool is_lost() const { return is_closed || (!is_complete && !exchange.is_open()); }

  Cycle* cycle;
  Exchange exchange;
  std::string pending;
  Fields trailers;
  std::optional<std::uint64_t> left;  // Bytes of the declared size that were not sent yet.
  bool has_body = false;
  bool is_head = false;
  bool is_watched = false;
  bool is_paused = false;
  bool is_received = false;   // The whole body.
  bool is_given = false;      // The application has received the whole body.
  bool is_client_gone = false;
  bool is_closed = false;
  bool has_started = false;   // http.response.start was sent.
  bool has_begun = false;     // The header section was passed on.
  bool is_complete = false;   // The response was.
  bool expects_trailers = false;
};

namespace {

Cycle* cycle_of(PyObject* self) { return reinterpret_cast<Cycle*>(self); }
PyObject* object_of(Cycle* cycle) { return reinterpret_cast<PyObject*>(cycle); }
const State* state_of(Cycle* cycle) { return cycle->server->state; }

}  // namespace

void Body::on_body(Bytes bytes) {
  pending.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (pending.size() > kAhead && !is_paused) {
    is_paused = true;
    exchange.pause();
  }
  wake(state_of(cycle), &cycle->receiving);
}

void Body::on_body_end(const spate::http::FieldsView&) {
  is_received = true;
  wake(state_of(cycle), &cycle->receiving);
}

void Body::on_client_end() {
  is_client_gone = true;
  wake(state_of(cycle), &cycle->receiving);
}

void Body::on_drained() { wake(state_of(cycle), &cycle->sending); }

void Body::on_closed(std::error_code) {
  if (cycle->server->engine->watched.erase(object_of(cycle)) == 0) return;
  const Ref self(object_of(cycle));  // The reference of watch().
  is_closed = true;
  wake(state_of(cycle), &cycle->receiving);
  wake(state_of(cycle), &cycle->sending);
}

void Body::watch() {
  if (std::exchange(is_watched, true)) return;
  if (!exchange.start(*this)) {
    is_closed = true;
    return;
  }
  Py_INCREF(object_of(cycle));
  cycle->server->engine->watched.emplace(object_of(cycle), close_cycle);
}

namespace {

PyObject* request_message(Cycle* cycle) {
  Body& body = *cycle->body;
  const State& names = *state_of(cycle);
  const bool is_last = !body.has_body || body.is_received;
  Ref message(PyDict_New());
  if (!message) return nullptr;
  PyObject* const dict = message.get();
  if (PyDict_SetItem(dict, names[Name::type], names[Name::request]) < 0 ||
      !put(dict, names[Name::body], bytes_object(body.pending)) ||
      PyDict_SetItem(dict, names[Name::more_body], is_last ? Py_False : Py_True) < 0) {
    return nullptr;
  }
  body.pending.clear();
  if (is_last) body.is_given = true;
  if (std::exchange(body.is_paused, false)) {
    body.exchange.resume();
    cycle->server->engine->request_turn();
  }
  return message.release();
}

PyObject* disconnect_message(Cycle* cycle) {
  const State& names = *state_of(cycle);
  Ref message(PyDict_New());
  if (!message) return nullptr;
  if (PyDict_SetItem(message.get(), names[Name::type], names[Name::disconnect]) < 0) return nullptr;
  return message.release();
}

PyObject* receive_step(Waiting* waiting) {
  Cycle* const cycle = cycle_of(waiting->owner);
  Body& body = *cycle->body;
  if (body.is_complete) return disconnect_message(cycle);
  if (!body.is_given) {
    if (!body.has_body) return request_message(cycle);
    body.watch();
    if (!body.pending.empty() || body.is_received) return request_message(cycle);
  }
  body.watch();
  cycle->server->engine->request_turn();
  if (body.is_closed || (body.is_client_gone && body.pending.empty())) {
    return disconnect_message(cycle);
  }
  return nullptr;
}

PyObject* cycle_receive(PyObject* self, PyObject*) {
  Cycle* const cycle = cycle_of(self);
  return wait_for(state_of(cycle), self, cycle->server->loop, &cycle->receiving, receive_step,
                  nullptr);
}

// ---- sending

PyObject* unexpected(PyObject* type, const char* expected) {
  PyErr_Format(PyExc_RuntimeError, "expected the message %s, got %R", expected, type);
  return nullptr;
}

PyObject* raise_disconnected(Cycle* cycle) {
  PyErr_SetString(state_of(cycle)->disconnected, "the client has disconnected");
  return nullptr;
}

// The response ends here, also for receive().
void complete(Cycle* cycle) {
  cycle->body->is_complete = true;
  wake(state_of(cycle), &cycle->receiving);
}

bool is_without_body(const Body& body, Status status) {
  const int code = spate::http::code_of(status);
  return body.is_head || code == 204 || code == 304;
}

// Reads the start message, which ends its wait for the body.
bool take_start(Cycle* cycle, Status& status, Fields& fields,
                std::optional<std::uint64_t>& size) {
  const Ref start(std::exchange(cycle->start, nullptr));
  const State& names = *state_of(cycle);
  if (!start) {
    PyErr_SetString(PyExc_RuntimeError, "the response was refused");
    return false;
  }
  PyObject* const number = item(start.get(), names[Name::status]);
  const long code = number == nullptr ? 0 : PyLong_AsLong(number);
  if (PyErr_Occurred() != nullptr) return false;
  if (code < 200 || code > 999) {
    PyErr_SetString(PyExc_ValueError, "the status of a response must be from 200 to 999");
    return false;
  }
  status = static_cast<Status>(code);
  PyObject* const headers = item(start.get(), names[Name::headers]);
  return headers == nullptr ? PyErr_Occurred() == nullptr : read_headers(headers, fields, size);
}

PyObject* refused(Cycle* cycle) {
  Body& body = *cycle->body;
  if (body.is_lost()) return raise_disconnected(cycle);
  PyErr_SetString(PyExc_ValueError, "the server cannot send this response");
  return nullptr;
}

// Begins a response in pieces. False with an exception.
bool begin(Cycle* cycle, std::optional<std::uint64_t> whole) {
  Body& body = *cycle->body;
  Status status;
  Fields fields;
  std::optional<std::uint64_t> size;
  if (!take_start(cycle, status, fields, size)) return false;
  if (!size && !body.expects_trailers) size = whole;
  const bool is_begun = body.exchange.begin(status, fields, size);
  body.has_begun = is_begun;
  cycle->server->engine->request_turn();
  body.left = is_without_body(body, status) ? std::nullopt : size;
  if (!is_begun) refused(cycle);
  return is_begun;
}

// Counts bytes of the body. False with an exception if they exceed the declared size.
bool count(Cycle* cycle, std::uint64_t bytes) {
  Body& body = *cycle->body;
  if (!body.left) return true;
  if (bytes > *body.left) {
    PyErr_SetString(PyExc_RuntimeError, "the response is longer than its Content-Length");
    return false;
  }
  *body.left -= bytes;
  return true;
}

PyObject* end_response(Cycle* cycle) {
  Body& body = *cycle->body;
  if (body.left.value_or(0) > 0) {
    PyErr_SetString(PyExc_RuntimeError, "the response is shorter than its Content-Length");
    return nullptr;
  }
  if (!body.exchange.end(body.trailers)) {
    if (body.is_lost()) return raise_disconnected(cycle);
    PyErr_SetString(PyExc_ValueError, "the server cannot send these trailers");
    return nullptr;
  }
  complete(cycle);
  cycle->server->engine->request_turn();
  Py_RETURN_NONE;
}

struct Piece {
  Bytes bytes;
  bool is_last;
};

// Reads http.response.body. False with an exception.
bool read_piece(Cycle* cycle, PyObject* message, Piece& piece) {
  const State& names = *state_of(cycle);
  const int more = flag(message, names[Name::more_body]);
  PyObject* const body = more < 0 ? nullptr : item(message, names[Name::body]);
  if (PyErr_Occurred() != nullptr) return false;
  piece.is_last = more == 0;
  if (body == nullptr) return true;
  Py_buffer view;
  if (PyObject_GetBuffer(body, &view, PyBUF_SIMPLE) < 0) return false;
  // The message keeps the object; the application must not change it before send() has returned.
  piece.bytes = Bytes(static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len));
  PyBuffer_Release(&view);
  return true;
}

// Writes pieces until the queue is full, and ends the response after the last one.
PyObject* send_step(Waiting* waiting) {
  Cycle* const cycle = cycle_of(waiting->owner);
  Body& body = *cycle->body;
  Piece piece;
  if (!read_piece(cycle, waiting->data, piece)) return nullptr;
  while (waiting->offset < piece.bytes.size()) {
    if (body.is_lost()) return raise_disconnected(cycle);
    if (body.exchange.is_full()) return nullptr;
    const std::size_t size = std::min(piece.bytes.size() - waiting->offset, Body::kPiece);
    const bool is_written = body.exchange.write(piece.bytes.subspan(waiting->offset, size));
    cycle->server->engine->request_turn();
    if (!is_written) return refused(cycle);
    waiting->offset += size;
    if (body.exchange.is_full()) body.watch();
  }
  if (piece.is_last && !body.expects_trailers) return end_response(cycle);
  if (body.is_lost()) return raise_disconnected(cycle);
  if (body.exchange.is_full()) return nullptr;
  Py_RETURN_NONE;
}

// Sends a whole response, without its parts in between.
PyObject* respond(Cycle* cycle, const Piece& piece) {
  Body& body = *cycle->body;
  Status status;
  Fields fields;
  std::optional<std::uint64_t> size;
  if (!take_start(cycle, status, fields, size)) return nullptr;
  const bool is_empty = is_without_body(body, status);
  bool is_sent;
  if (size && *size != piece.bytes.size() && is_empty) {
    body.has_begun = body.exchange.begin(status, fields, size);
    is_sent = body.has_begun && body.exchange.end();
  } else {
    body.left = size;
    if (!count(cycle, piece.bytes.size())) return nullptr;
    if (body.left.value_or(0) > 0) {
      PyErr_SetString(PyExc_RuntimeError, "the response is shorter than its Content-Length");
      return nullptr;
    }
    is_sent = body.exchange.respond(status, fields, piece.bytes);
  }
  cycle->server->engine->request_turn();
  if (!is_sent) return refused(cycle);
  body.has_begun = true;
  complete(cycle);
  return ready(state_of(cycle), object_of(cycle), Py_NewRef(Py_None));
}

PyObject* send_start(Cycle* cycle, PyObject* message) {
  Body& body = *cycle->body;
  const int trailers = flag(message, (*state_of(cycle))[Name::trailers]);
  if (trailers < 0) return nullptr;
  if (body.is_lost()) return raise_disconnected(cycle);
  body.expects_trailers = trailers > 0;
  body.has_started = true;
  cycle->start = Py_NewRef(message);
  return ready(state_of(cycle), object_of(cycle), Py_NewRef(Py_None));
}

PyObject* send_body(Cycle* cycle, PyObject* message) {
  Body& body = *cycle->body;
  Piece piece;
  if (!read_piece(cycle, message, piece)) return nullptr;
  if (body.is_lost()) return raise_disconnected(cycle);
  const bool is_whole = !body.has_begun && piece.is_last && !body.expects_trailers;
  if (is_whole && piece.bytes.size() <= Body::kPiece) return respond(cycle, piece);
  const std::uint64_t whole = piece.bytes.size();
  if (!body.has_begun && !begin(cycle, is_whole ? std::optional(whole) : std::nullopt)) {
    return nullptr;
  }
  if (!count(cycle, piece.bytes.size())) return nullptr;
  return wait_for(state_of(cycle), object_of(cycle), cycle->server->loop, &cycle->sending,
                  send_step, message);
}

PyObject* send_trailers(Cycle* cycle, PyObject* message) {
  Body& body = *cycle->body;
  const State& names = *state_of(cycle);
  const int more = flag(message, names[Name::more_trailers]);
  PyObject* const headers = more < 0 ? nullptr : item(message, names[Name::headers]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  std::optional<std::uint64_t> size;
  if (headers != nullptr && !read_headers(headers, body.trailers, size)) return nullptr;
  if (!body.has_begun && !begin(cycle, std::nullopt)) return nullptr;
  return ready(&names, object_of(cycle), more > 0 ? Py_NewRef(Py_None) : end_response(cycle));
}

bool send_file(Cycle* cycle, int file) {
  struct stat status;
  if (::fstat(file, &status) < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (!begin(cycle, size) || !count(cycle, size)) return false;
  const std::error_code error = cycle->body->exchange.send_file(file, 0, size);
  cycle->server->engine->request_turn();
  if (error) pyspate::raise_errno(error.value());
  return !error;
}

PyObject* send_path(Cycle* cycle, PyObject* message) {
  if (cycle->body->has_begun) {
    PyErr_SetString(PyExc_RuntimeError, "http.response.pathsend must be the only body");
    return nullptr;
  }
  PyObject* const path = item(message, (*state_of(cycle))[Name::path]);
  PyObject* encoded = nullptr;
  if (path == nullptr || PyUnicode_FSConverter(path, &encoded) == 0) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ValueError, "there is no path");
    return nullptr;
  }
  const Ref name(encoded);
  const int file = ::open(PyBytes_AS_STRING(encoded), O_RDONLY | O_CLOEXEC);
  if (file < 0) return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
  if (!send_file(cycle, file)) {
    ::close(file);
    return nullptr;
  }
  return ready(state_of(cycle), object_of(cycle), end_response(cycle));
}

bool is(PyObject* type, const char* text) {
  return PyUnicode_CompareWithASCIIString(type, text) == 0;
}

PyObject* cycle_send(PyObject* self, PyObject* message) {
  Cycle* const cycle = cycle_of(self);
  Body& body = *cycle->body;
  PyObject* const type =
      PyDict_Check(message) ? item(message, (*state_of(cycle))[Name::type]) : nullptr;
  if (type == nullptr || !PyUnicode_Check(type)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "a message must be a dict with a type");
    }
    return nullptr;
  }
  if (!body.has_started) {
    return is(type, "http.response.start") ? send_start(cycle, message)
                                           : unexpected(type, "'http.response.start'");
  }
  if (body.is_complete) {
    PyErr_Format(PyExc_RuntimeError, "the response is complete, got the message %R", type);
    return nullptr;
  }
  if (is(type, "http.response.body")) return send_body(cycle, message);
  if (is(type, "http.response.pathsend")) return send_path(cycle, message);
  if (body.expects_trailers && is(type, "http.response.trailers")) {
    return send_trailers(cycle, message);
  }
  return unexpected(type, "'http.response.body'");
}

// ---- the end of the application

// Sends 500, or resets the connection if the response has begun. Returns True if the client had not
// left: then the exception is the application's.
PyObject* cycle_fail(PyObject* self, PyObject*) {
  Cycle* const cycle = cycle_of(self);
  Body& body = *cycle->body;
  const bool was_lost = body.is_lost();
  if (!body.is_complete && !was_lost) {
    Py_CLEAR(cycle->start);
    if (body.has_begun) {
      body.exchange.abort();
    } else {
      body.exchange.respond(Status::internal_server_error, "Internal Server Error");
    }
    complete(cycle);
    cycle->server->engine->request_turn();
  }
  return PyBool_FromLong(!was_lost);
}

// Returns None if the response is complete, or the client has left; otherwise the missing step.
PyObject* cycle_finish(PyObject* self, PyObject*) {
  Body& body = *cycle_of(self)->body;
  if (body.is_complete || body.is_lost()) Py_RETURN_NONE;
  return PyUnicode_FromString(body.has_started ? "completing the response"
                                               : "starting a response");
}

PyObject* cycle_has_body(PyObject* self, void*) {
  return PyBool_FromLong(cycle_of(self)->body->has_body);
}

int cycle_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(cycle_of(self)->server));
  Py_VISIT(cycle_of(self)->receiving);
  Py_VISIT(cycle_of(self)->sending);
  Py_VISIT(cycle_of(self)->start);
  return 0;
}

int cycle_clear(PyObject* self) {
  Cycle* const cycle = cycle_of(self);
  Py_CLEAR(cycle->receiving);
  Py_CLEAR(cycle->sending);
  Py_CLEAR(cycle->start);
  return 0;
}

void cycle_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Cycle* const cycle = cycle_of(self);
  PyObject_GC_UnTrack(self);
  cycle_clear(self);
  delete std::exchange(cycle->body, nullptr);
  if (cycle->server != nullptr) {
    if (cycle->server->engine != nullptr) {
      --cycle->server->engine->in_progress;
      cycle->server->engine->request_turn();
    }
    Py_DECREF(as_object(cycle->server));
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"receive", cycle_receive, METH_NOARGS, nullptr},
                         {"send", cycle_send, METH_O, nullptr},
                         {"fail", cycle_fail, METH_NOARGS, nullptr},
                         {"finish", cycle_finish, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef attributes[] = {{"has_body", cycle_has_body, nullptr, nullptr, nullptr}, {}};
PyType_Slot slots[] = {{Py_tp_dealloc, as_slot(cycle_dealloc)},
                       {Py_tp_traverse, as_slot(cycle_traverse)},
                       {Py_tp_clear, as_slot(cycle_clear)},
                       {Py_tp_getset, attributes},
                       {Py_tp_methods, methods},
                       {}};

}  // namespace

PyType_Spec cycle_spec = {"spate_server._native.Cycle", sizeof(Cycle), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                              Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          slots};

void close_cycle(PyObject* self) { cycle_of(self)->body->on_closed({}); }

bool start_cycle(Server* server, Exchange exchange) {
  const auto& received = exchange.request();
  const Ref scope(server->environ == Py_None ? make_scope(server, received, false)
                                             : make_environ(server, received));
  if (!scope) return false;
  PyTypeObject* const type = server->state->cycle_type;
  const Ref self(type->tp_alloc(type, 0));
  if (!self) return false;
  Cycle* const cycle = cycle_of(self.get());
  cycle->server = server_of(Py_NewRef(as_object(server)));
  ++server->engine->in_progress;
  cycle->body = new Body(cycle, std::move(exchange));
  const auto& request = cycle->body->exchange.request();
  cycle->body->has_body = request.has_body();
  cycle->body->is_head = request.method() == spate::http::Method::head;
  return start_task(server, scope.get(), self.get());
}

}  // namespace spate_server
