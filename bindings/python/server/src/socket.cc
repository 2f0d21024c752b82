#include "socket.h"

#include <deque>
#include <optional>
#include <string>

#include "scope.h"
#include "spate/http/websocket.h"
#include "waiting.h"

namespace spate_server {

using spate::Bytes;
using spate::http::CloseCode;
using spate::http::Exchange;
using spate::http::Fields;
using spate::http::MessageKind;
using spate::http::Status;
using spate::http::WebSocket;

enum class Phase {
  asked,      // The application has not decided.
  open,       // It has accepted.
  rejecting,  // It has sent websocket.http.response.start.
  ended,      // It has closed or rejected.
};

// The C++ half.
class Line final : public spate::http::WebSocketHandler {
 public:
  // Reading pauses while the application has not received so many messages, or bytes.
  static constexpr std::size_t kMostMessages = 32;
  static constexpr std::size_t kMostBytes = 1 << 20;

  Line(Socket* owner, Exchange&& its) : socket(owner), exchange(std::move(its)) {}
  ~Line() {
    for (PyObject* const message : messages) Py_DECREF(message);
  }

  void on_message(MessageKind kind, Bytes bytes) override;
  void on_drained() override;
  void on_closed(CloseCode code, std::string_view reason, std::error_code error) override;

  Socket* socket;
  Exchange exchange;
  WebSocket peer;
  std::deque<PyObject*> messages;
  std::size_t bytes_waiting = 0;
  Phase phase = Phase::asked;
  bool was_announced = false;  // websocket.connect was received.
  bool has_begun = false;      // The rejection.
  bool is_paused = false;
  bool is_closed = false;
  int code = 1006;
  std::string reason;
};

namespace {

Socket* socket_of(PyObject* self) { return reinterpret_cast<Socket*>(self); }
PyObject* object_of(Socket* socket) { return reinterpret_cast<PyObject*>(socket); }
const State* state_of(Socket* socket) { return socket->server->state; }

PyObject* message_of(const State& names, Name type) {
  Ref message(PyDict_New());
  if (!message) return nullptr;
  if (PyDict_SetItem(message.get(), names[Name::type], names[type]) < 0) return nullptr;
  return message.release();
}

PyObject* received(const State& names, Bytes bytes, MessageKind kind) {
  Ref message(message_of(names, Name::ws_receive));
  if (!message) return nullptr;
  const auto text = reinterpret_cast<const char*>(bytes.data());
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  const bool is_put =
      kind == MessageKind::text
          ? put(message.get(), names[Name::text], PyUnicode_DecodeUTF8(text, size, nullptr))
          : put(message.get(), names[Name::bytes], PyBytes_FromStringAndSize(text, size));
  return is_put ? message.release() : nullptr;
}

PyObject* disconnect_message(Socket* socket) {
  const State& names = *state_of(socket);
  const Line& line = *socket->line;
  Ref message(message_of(names, Name::ws_disconnect));
  if (!message || !put(message.get(), names[Name::code], PyLong_FromLong(line.code)) ||
      !put(message.get(), names[Name::reason],
           PyUnicode_DecodeUTF8(line.reason.data(), static_cast<Py_ssize_t>(line.reason.size()),
                                "replace"))) {
    return nullptr;
  }
  return message.release();
}

std::size_t size_of(const State& names, PyObject* message) {
  PyObject* const bytes = PyDict_GetItemWithError(message, names[Name::bytes]);
  if (bytes != nullptr) return static_cast<std::size_t>(PyBytes_GET_SIZE(bytes));
  PyObject* const text = PyDict_GetItemWithError(message, names[Name::text]);
  return text == nullptr ? 0 : static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
}

}  // namespace

void Line::on_message(MessageKind kind, Bytes bytes) {
  const State& names = *state_of(socket);
  PyObject* const message = received(names, bytes, kind);
  if (message == nullptr) {
    PyErr_WriteUnraisable(object_of(socket));
    return;
  }
  messages.push_back(message);
  bytes_waiting += size_of(names, message);
  if (!is_paused && (messages.size() >= kMostMessages || bytes_waiting > kMostBytes)) {
    is_paused = true;
    peer.pause();
  }
  wake(&names, &socket->receiving);
}

void Line::on_drained() { wake(state_of(socket), &socket->sending); }

void Line::on_closed(CloseCode its_code, std::string_view its_reason, std::error_code) {
  if (socket->server->engine->watched.erase(object_of(socket)) == 0) return;
  const Ref self(object_of(socket));  // The reference of accept().
  is_closed = true;
  code = static_cast<int>(its_code);
  reason = its_reason;
  wake(state_of(socket), &socket->receiving);
  wake(state_of(socket), &socket->sending);
}

namespace {

PyObject* next_message(Socket* socket) {
  Line& line = *socket->line;
  PyObject* const message = line.messages.front();
  line.messages.pop_front();
  line.bytes_waiting -= size_of(*state_of(socket), message);
  if (line.is_paused && line.messages.empty()) {
    line.is_paused = false;
    line.peer.resume();
    socket->server->engine->request_turn();
  }
  return message;
}

PyObject* receive_step(Waiting* waiting) {
  Socket* const socket = socket_of(waiting->owner);
  Line& line = *socket->line;
  if (!std::exchange(line.was_announced, true)) {
    return message_of(*state_of(socket), Name::ws_connect);
  }
  if (!line.messages.empty()) return next_message(socket);
  const bool is_rejected = line.phase == Phase::ended && !line.peer.is_open();
  return line.is_closed || is_rejected ? disconnect_message(socket) : nullptr;
}

PyObject* socket_receive(PyObject* self, PyObject*) {
  Socket* const socket = socket_of(self);
  return wait_for(state_of(socket), self, socket->server->loop, &socket->receiving, receive_step,
                  nullptr);
}

// ---- sending

PyObject* raise_disconnected(Socket* socket) {
  PyErr_SetString(state_of(socket)->disconnected, "the client has disconnected");
  return nullptr;
}

PyObject* done(Socket* socket) {
  socket->server->engine->request_turn();
  return ready(state_of(socket), object_of(socket), Py_NewRef(Py_None));
}

// After this, receive() returns websocket.disconnect.
void end(Socket* socket) {
  socket->line->phase = Phase::ended;
  wake(state_of(socket), &socket->receiving);
}

bool add_headers(Socket* socket, PyObject* message) {
  PyObject* const headers = item(message, (*state_of(socket))[Name::headers]);
  if (headers == nullptr) return PyErr_Occurred() == nullptr;
  Fields fields;
  std::optional<std::uint64_t> size;
  if (!read_headers(headers, fields, size)) return false;
  for (const spate::http::Field field : fields.view()) {
    if (!socket->line->exchange.add_field(field.name, field.value)) {
      PyErr_SetString(PyExc_ValueError, "the server cannot send these headers");
      return false;
    }
  }
  return true;
}

PyObject* send_accept(Socket* socket, PyObject* message) {
  Line& line = *socket->line;
  spate::http::WebSocketOptions options;
  options.origins = spate::http::Origins::any;  // The application decides.
  options.max_message = socket->server->engine->max_message;
  PyObject* const protocol = item(message, (*state_of(socket))[Name::subprotocol]);
  if (protocol != nullptr) {
    const char* const text = PyUnicode_AsUTF8(protocol);
    if (text == nullptr) return nullptr;
    options.protocols = {text};
  }
  if (PyErr_Occurred() != nullptr || !add_headers(socket, message)) return nullptr;
  auto accepted = WebSocket::accept(std::move(line.exchange), line, options);
  if (!accepted) {
    line.is_closed = true;
    end(socket);
    socket->server->engine->request_turn();
    return raise_disconnected(socket);
  }
  line.peer = std::move(*accepted);
  line.phase = Phase::open;
  Py_INCREF(object_of(socket));
  socket->server->engine->watched.emplace(object_of(socket), close_socket);
  return done(socket);
}

PyObject* reject(Socket* socket, Status status) {
  socket->line->exchange.respond(status);
  end(socket);
  return done(socket);
}

bool read_close(Socket* socket, PyObject* message, CloseCode& code, std::string_view& reason) {
  const State& names = *state_of(socket);
  PyObject* const number = item(message, names[Name::code]);
  PyObject* const text = item(message, names[Name::reason]);
  long value = 1000;
  if (number != nullptr) value = PyLong_AsLong(number);
  Py_ssize_t size = 0;
  const char* utf8 = "";
  if (text != nullptr) utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (PyErr_Occurred() != nullptr) return false;
  code = static_cast<CloseCode>(value);
  reason = {utf8, static_cast<std::size_t>(size)};
  if (value > 0 && value < 5000 && may_be_sent(code) && size <= 123) return true;
  PyErr_Format(PyExc_ValueError, "the close code %ld or its reason cannot be sent", value);
  return false;
}

PyObject* send_close(Socket* socket, PyObject* message) {
  CloseCode code;
  std::string_view reason;
  if (!read_close(socket, message, code, reason)) return nullptr;
  socket->line->peer.close(code, reason);
  end(socket);
  return done(socket);
}

PyObject* drain_step(Waiting* waiting) {
  Line& line = *socket_of(waiting->owner)->line;
  if (line.is_closed || !line.peer.is_full()) Py_RETURN_NONE;
  return nullptr;
}

bool send_bytes(Socket* socket, MessageKind kind, const void* data, Py_ssize_t size) {
  const Bytes bytes(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
  const bool is_sent = socket->line->peer.send(kind, bytes);
  socket->server->engine->request_turn();
  if (!is_sent) raise_disconnected(socket);
  return is_sent;
}

bool send_data(Socket* socket, PyObject* message) {
  const State& names = *state_of(socket);
  Py_ssize_t size;
  if (PyObject* const bytes = item(message, names[Name::bytes])) {
    char* data;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return false;
    return send_bytes(socket, MessageKind::binary, data, size);
  }
  PyObject* const text = PyErr_Occurred() == nullptr ? item(message, names[Name::text]) : nullptr;
  if (text == nullptr) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_ValueError, "websocket.send needs text or bytes");
    }
    return false;
  }
  const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
  return data != nullptr && send_bytes(socket, MessageKind::text, data, size);
}

PyObject* send_message(Socket* socket, PyObject* message) {
  if (!send_data(socket, message)) return nullptr;
  return wait_for(state_of(socket), object_of(socket), socket->server->loop, &socket->sending,
                  drain_step, nullptr);
}

// ---- a response in place of the WebSocket

bool begin_rejection(Socket* socket) {
  const State& names = *state_of(socket);
  PyObject* const number = item(socket->start, names[Name::status]);
  const long status = number == nullptr ? 0 : PyLong_AsLong(number);
  PyObject* const headers = item(socket->start, names[Name::headers]);
  if (PyErr_Occurred() != nullptr) return false;
  if (status < 200 || status > 999) {
    PyErr_SetString(PyExc_ValueError, "the status of a response must be from 200 to 999");
    return false;
  }
  Fields fields;
  std::optional<std::uint64_t> size;
  if (headers != nullptr && !read_headers(headers, fields, size)) return false;
  socket->line->has_begun = true;
  if (socket->line->exchange.begin(static_cast<Status>(status), fields, size)) return true;
  raise_disconnected(socket);
  return false;
}

PyObject* send_rejection(Socket* socket, PyObject* message) {
  const State& names = *state_of(socket);
  Line& line = *socket->line;
  const int more = flag(message, names[Name::more_body]);
  PyObject* const body = more < 0 ? nullptr : item(message, names[Name::body]);
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (body != nullptr && PyBytes_AsStringAndSize(body, &data, &size) < 0) return nullptr;
  if (PyErr_Occurred() != nullptr || (!line.has_begun && !begin_rejection(socket))) return nullptr;
  if (size > 0) {
    line.exchange.write(std::string_view(data, static_cast<std::size_t>(size)));
  }
  if (more == 0) {
    line.exchange.end();
    end(socket);
  }
  return done(socket);
}

PyObject* unexpected(PyObject* type, const char* expected) {
  PyErr_Format(PyExc_RuntimeError, "expected the message %s, got %R", expected, type);
  return nullptr;
}

bool is(PyObject* type, const char* text) {
  return PyUnicode_CompareWithASCIIString(type, text) == 0;
}

PyObject* send_answer(Socket* socket, PyObject* type, PyObject* message) {
  if (is(type, "websocket.accept")) return send_accept(socket, message);
  if (is(type, "websocket.close")) return reject(socket, Status::forbidden);
  if (!is(type, "websocket.http.response.start")) {
    return unexpected(type, "'websocket.accept', 'websocket.close' or "
                            "'websocket.http.response.start'");
  }
  socket->start = Py_NewRef(message);
  socket->line->phase = Phase::rejecting;
  return done(socket);
}

PyObject* socket_send(PyObject* self, PyObject* message) {
  Socket* const socket = socket_of(self);
  PyObject* const type =
      PyDict_Check(message) ? item(message, (*state_of(socket))[Name::type]) : nullptr;
  if (type == nullptr || !PyUnicode_Check(type)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "a message must be a dict with a type");
    }
    return nullptr;
  }
  switch (socket->line->phase) {
    case Phase::asked:
      return send_answer(socket, type, message);
    case Phase::rejecting:
      if (is(type, "websocket.http.response.body")) return send_rejection(socket, message);
      return unexpected(type, "'websocket.http.response.body'");
    case Phase::open:
      if (socket->line->is_closed) return raise_disconnected(socket);
      if (is(type, "websocket.send")) return send_message(socket, message);
      if (is(type, "websocket.close")) return send_close(socket, message);
      return unexpected(type, "'websocket.send' or 'websocket.close'");
    case Phase::ended:
      break;
  }
  PyErr_Format(PyExc_RuntimeError, "the WebSocket is closed, got the message %R", type);
  return nullptr;
}

// ---- the end of the application

// Sends 500, or closes with internal_error. Returns True if the client had not left.
PyObject* socket_fail(PyObject* self, PyObject*) {
  Socket* const socket = socket_of(self);
  Line& line = *socket->line;
  const bool was_lost = line.is_closed;
  if (line.phase == Phase::open && !was_lost) {
    line.peer.close(CloseCode::internal_error);
  } else if (line.has_begun && line.phase == Phase::rejecting) {
    line.exchange.abort();
  } else if (line.phase != Phase::ended) {
    line.exchange.respond(Status::internal_server_error, "Internal Server Error");
  }
  end(socket);
  socket->server->engine->request_turn();
  return PyBool_FromLong(!was_lost);
}

// Returns None if all is done, otherwise the missing step. Closes an open WebSocket.
PyObject* socket_finish(PyObject* self, PyObject*) {
  Socket* const socket = socket_of(self);
  Line& line = *socket->line;
  if (line.phase == Phase::asked) return PyUnicode_FromString("accepting the WebSocket");
  if (line.phase == Phase::rejecting) return PyUnicode_FromString("completing the response");
  if (line.phase == Phase::open && !line.is_closed) line.peer.close();
  end(socket);
  socket->server->engine->request_turn();
  Py_RETURN_NONE;
}

int socket_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_object(socket_of(self)->server));
  Py_VISIT(socket_of(self)->receiving);
  Py_VISIT(socket_of(self)->sending);
  Py_VISIT(socket_of(self)->start);
  return 0;
}

int socket_clear(PyObject* self) {
  Py_CLEAR(socket_of(self)->receiving);
  Py_CLEAR(socket_of(self)->sending);
  Py_CLEAR(socket_of(self)->start);
  return 0;
}

void socket_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Socket* const socket = socket_of(self);
  PyObject_GC_UnTrack(self);
  socket_clear(self);
  delete std::exchange(socket->line, nullptr);
  if (socket->server != nullptr) {
    --socket->server->engine->in_progress;
    socket->server->engine->request_turn();
    Py_DECREF(as_object(socket->server));
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"receive", socket_receive, METH_NOARGS, nullptr},
                         {"send", socket_send, METH_O, nullptr},
                         {"fail", socket_fail, METH_NOARGS, nullptr},
                         {"finish", socket_finish, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_dealloc, as_slot(socket_dealloc)},
                       {Py_tp_traverse, as_slot(socket_traverse)},
                       {Py_tp_clear, as_slot(socket_clear)},
                       {Py_tp_methods, methods},
                       {}};

}  // namespace

PyType_Spec socket_spec = {"spate_server._native.Socket", sizeof(Socket), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                               Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           slots};

void close_socket(PyObject* self) {
  socket_of(self)->line->on_closed(CloseCode::abnormal, {}, {});
}

bool start_socket(Server* server, Exchange exchange) {
  const Ref scope(make_scope(server, exchange.request(), true));
  if (!scope) return false;
  PyTypeObject* const type = server->state->socket_type;
  const Ref self(type->tp_alloc(type, 0));
  if (!self) return false;
  Socket* const socket = socket_of(self.get());
  socket->server = server_of(Py_NewRef(as_object(server)));
  ++server->engine->in_progress;
  socket->line = new Line(socket, std::move(exchange));
  return start_task(server, scope.get(), self.get());
}

}  // namespace spate_server
