#include "server.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "cycle.h"
#include "scope.h"
#include "socket.h"
#include "spate/http/http2.h"
#include "spate/net/tls.h"

namespace spate_server {

using spate::Address;
using spate::ListenOptions;
using spate::Listener;
using spate::Loop;
using spate::Nanos;
using spate::http::AccessRecord;
using spate::http::Exchange;
using spate::http::ServerOptions;
using spate::http::Status;

namespace {

constexpr double kSecond = 1e9;
constexpr double kLongest = 86400 * 365;

Nanos nanos_of(double seconds) {
  return Nanos{static_cast<std::int64_t>(std::min(seconds, kLongest) * kSecond)};
}

bool raise_error(const std::error_code& error) {
  const bool is_system = error.category() == std::system_category() ||
                         error.category() == std::generic_category();
  if (is_system) {
    pyspate::raise_errno(error.value());
  } else {
    PyErr_SetString(PyExc_OSError, error.message().c_str());
  }
  return false;
}

}  // namespace

void Engine::close() {
  listeners_.clear();
  http_ = {};
  while (!watched.empty()) {
    const auto [object, end] = *watched.begin();
    end(object);
  }
  cancel_timer();
}

// The timer keeps the Server, by turn().
void Engine::cancel_timer() {
  const Ref timer = std::move(timer_);
  if (!timer) return;
  const ExceptionKeeper exception;
  const Ref done(PyObject_CallMethodNoArgs(timer.get(), (*server_->state)[Name::cancel]));
  if (!done) PyErr_Clear();
}

int Engine::traverse(visitproc visit, void* arg) {
  Py_VISIT(timer_.get());
  Py_VISIT(exit_.get());
  for (const Ref& function : drained_) Py_VISIT(function.get());
  return 0;
}

void Engine::clear() {
  timer_ = {};
  exit_ = {};
  drained_.clear();
}

Engine::~Engine() {
  close();
  for (PyObject* const name : field_names) Py_XDECREF(name);
  for (PyObject* const name : environ_names) Py_XDECREF(name);
}

bool Engine::start(ServerOptions options) {
  if (server_->access != Py_None) {
    options.log = [this](const AccessRecord& record) { call_log(record); };
  }
  auto made = spate::http::Server::create(*loop_, *this, std::move(options));
  if (!made) return raise_error(made.error());
  http_ = std::move(*made);
  loop_->ref();
  return true;
}

bool Engine::listen(const Address& address, const ListenOptions& options) {
  const auto bound = http_.listen(address, options);
  if (!bound) return raise_error(bound.error());
  Py_SETREF(server_->local, pair_of(*bound));
  request_turn();
  return server_->local != nullptr;
}

bool Engine::adopt(int fd, int backlog) {
  ListenOptions options;
  options.backlog = backlog;
  auto listener = Listener::adopt(
      *loop_, fd, [this](spate::Stream stream, const Address&) { http_.add(std::move(stream)); },
      options);
  if (!listener) return raise_error(listener.error());
  Py_SETREF(server_->local, pair_of(listener->address()));
  listeners_.push_back(std::move(*listener));
  request_turn();
  return server_->local != nullptr;
}

void Engine::drain(double seconds, PyObject* done) {
  for (Listener& listener : listeners_) listener.close();
  drained_.push_back(Ref::copy(done));
  http_.drain(nanos_of(seconds), [this] {
    if (drained_.empty()) return;  // The garbage collector has cleared the Server.
    const Ref function = std::move(drained_.front());
    drained_.erase(drained_.begin());
    const Ref result(PyObject_CallNoArgs(function.get()));
    if (!result) report(function.get());
  });
  request_turn();
}

void Engine::on_request(Exchange exchange) {
  for (const spate::http::Field field : headers.view()) exchange.add_field(field.name, field.value);
  count_request();
  if (in_progress >= limit) {
    exchange.respond(Status::service_unavailable, "Service Unavailable");
    return;
  }
  const bool is_started = wants_websocket(exchange.request())
                              ? start_socket(server_, std::move(exchange))
                              : start_cycle(server_, std::move(exchange));
  if (!is_started) report(server_->run);
}

void Engine::report(PyObject* function) {
  if (exit_ || !pyspate::is_exit()) {
    PyErr_WriteUnraisable(function);
    return;
  }
  exit_ = take_exception();
  request_turn();
}

void Engine::count_request() {
  if (requests_left == 0 || --requests_left != 0 || server_->at_last == Py_None) return;
  const Ref result(PyObject_CallNoArgs(server_->at_last));
  if (!result) report(server_->at_last);
}

void Engine::call_log(const AccessRecord& record) {
  const auto& request = record.request;
  const Ref result(PyObject_CallFunction(
      server_->access, "NNNOi", pair_of(request.peer()), text_of(request.method_name()),
      text_of(request.target()),
      (*server_->state)[request.version() == spate::http::Version::http_1_1   ? Name::v11
                        : request.version() == spate::http::Version::http_1_0 ? Name::v10
                                                                              : Name::v20],
      spate::http::code_of(record.status)));
  if (!result) report(server_->access);
}

bool Engine::turn() {
  is_scheduled_ = false;
  if (is_running_) return true;
  if (!choose_start()) return false;
  is_running_ = true;
  const std::error_code error = loop_->run(spate::Run::no_wait);
  is_running_ = false;
  if (!(error ? raise_error(error) : prepare())) return false;
  if (!exit_) return true;
  pyspate::raise(std::move(exit_));
  return false;
}

bool Engine::choose_start() {
#if PY_VERSION_HEX >= 0x030C0000
  const State& names = *server_->state;
  const Ref factory(PyObject_CallMethodNoArgs(server_->loop, names[Name::get_task_factory]));
  starts_at_once_ = factory.get() == Py_None;
  return static_cast<bool>(factory);
#else
  return true;
#endif
}

// Sets a timer of the outer loop for the next one of the inner loop. A timer that expires too early
// is kept: it makes one turn more.
bool Engine::prepare() {
  const Nanos wait = loop_->prepare_to_wait();
  if (wait <= Nanos{0}) {
    request_turn();
    return PyErr_Occurred() == nullptr;
  }
  if (wait >= spate::kForever) return true;
  const Nanos at = loop_->now() + wait;
  if (timer_ && timer_at_ <= at && timer_at_ > loop_->now()) return true;
  const State& names = *server_->state;
  if (timer_) {
    const Ref done(PyObject_CallMethodNoArgs(timer_.get(), names[Name::cancel]));
    if (!done) return false;
  }
  const Ref turn(PyObject_GetAttr(as_object(server_), names[Name::turn]));
  const Ref delay(PyFloat_FromDouble(static_cast<double>(wait.count()) / kSecond));
  if (!turn || !delay) return false;
  timer_ = Ref(PyObject_CallMethodObjArgs(server_->loop, names[Name::call_later], delay.get(),
                                          turn.get(), nullptr));
  timer_at_ = at;
  return static_cast<bool>(timer_);
}

void Engine::request_turn() {
  if (server_->loop == nullptr) return;  // The garbage collector has cleared the Server.
  if (is_running_ || std::exchange(is_scheduled_, true)) return;
  const ExceptionKeeper exception;
  const State& names = *server_->state;
  const Ref turn(PyObject_GetAttr(as_object(server_), names[Name::turn]));
  const Ref handle(turn ? PyObject_CallMethodOneArg(server_->loop, names[Name::call_soon],
                                                    turn.get())
                        : nullptr);
  if (!handle) PyErr_Clear();  // The asyncio loop is closed: no turn will follow.
}

int Engine::descriptor() {
  const auto descriptor = loop_->poll_fd();
  if (descriptor) return *descriptor;
  raise_error(descriptor.error());
  return -1;
}

namespace {

struct Settings {
  PyObject *loop, *run, *tasks, *forwarded, *tls, *access, *state, *environ, *root_path;
  PyObject *headers, *at_last;
  double keep_alive;
  unsigned long long limit, max_message, most;
  const char *chain, *key, *client_ca, *name;
  int client_check;
};

constexpr const char* kSettings[] = {"loop",        "run",        "tasks",        "forwarded",
                                     "tls",         "access",     "state",        "environ",
                                     "root_path",   "keep_alive", "limit",        "max_message",
                                     "certfile",    "keyfile",    "client_ca",    "client_check",
                                     "server_name", "headers",    "max_requests", "at_last_request",
                                     nullptr};

bool set_tls(const Settings& settings, ServerOptions& options) {
  if (settings.chain == nullptr) return true;
  const char* const key = settings.key == nullptr ? settings.chain : settings.key;
  auto tls = spate::TlsContext::server(
      {.identities = {{.chain_file = settings.chain, .key_file = key}},
       .alpn = {"h2", "http/1.1"},
       .client_check = static_cast<spate::TlsClientCheck>(settings.client_check),
       .client_ca_file = settings.client_ca == nullptr ? "" : settings.client_ca});
  if (!tls) {
    PyErr_SetString(PyExc_OSError, tls.error().text.c_str());
    return false;
  }
  options.tls = *tls;
  return true;
}

bool start_engine(Server* server, const Settings& settings) {
  auto loop = Loop::create({.backend = "epoll"});
  if (!loop) return raise_error(loop.error());
  server->engine = new Engine(server, std::move(*loop));
  if (settings.limit > 0) server->engine->limit = settings.limit;
  server->engine->max_message = settings.max_message;
  if (settings.most > 0) server->engine->requests_left = settings.most;
  std::optional<std::uint64_t> size;
  if (!read_headers(settings.headers, server->engine->headers, size)) return false;
  if (size) {
    PyErr_SetString(PyExc_ValueError, "Content-Length is not a header of all responses");
    return false;
  }
  ServerOptions options;
  options.idle_timeout = nanos_of(settings.keep_alive);
  options.server_name = settings.name;
  auto http2 = spate::http::Http2::create();
  if (!http2) return raise_error(http2.error());
  options.http2 = *http2;
  return set_tls(settings, options) && server->engine->start(std::move(options));
}

PyObject* server_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  Settings s{};
  if (!PyArg_ParseTupleAndKeywords(
          args, keywords, "OOO!OOOOOUdKKzzzisOKO:Server", const_cast<char**>(kSettings), &s.loop,
          &s.run, &PyDict_Type, &s.tasks, &s.forwarded, &s.tls, &s.access, &s.state, &s.environ,
          &s.root_path, &s.keep_alive, &s.limit, &s.max_message, &s.chain, &s.key, &s.client_ca,
          &s.client_check, &s.name, &s.headers, &s.most, &s.at_last)) {
    return nullptr;
  }
  Ref self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  Server* const server = server_of(self.get());
  server->module = Py_NewRef(PyType_GetModule(type));
  server->state = static_cast<State*>(PyModule_GetState(server->module));
  server->loop = Py_NewRef(s.loop);
  server->run = Py_NewRef(s.run);
  server->tasks = Py_NewRef(s.tasks);
  server->forwarded = Py_NewRef(s.forwarded);
  server->tls = Py_NewRef(s.tls);
  server->access = Py_NewRef(s.access);
  server->scope_state = Py_NewRef(s.state);
  server->environ = Py_NewRef(s.environ);
  server->root_path = Py_NewRef(s.root_path);
  server->at_last = Py_NewRef(s.at_last);
  server->local = Py_NewRef(Py_None);
  return start_engine(server, s) ? self.release() : nullptr;
}

PyObject* server_listen(PyObject* self, PyObject* args) {
  const char* host;
  int port, backlog, reuse_port;
  if (!PyArg_ParseTuple(args, "siip", &host, &port, &backlog, &reuse_port)) return nullptr;
  ListenOptions options;
  options.backlog = backlog;
  options.reuse_port = reuse_port != 0;
  options.max_unsent = 128 * 1024;
  const auto address = Address::ip(host, static_cast<std::uint16_t>(port));
  if (!address) {
    PyErr_Format(PyExc_ValueError, "the host %s is not an address", host);
    return nullptr;
  }
  if (!server_of(self)->engine->listen(*address, options)) return nullptr;
  return Py_NewRef(server_of(self)->local);
}

PyObject* server_adopt(PyObject* self, PyObject* args) {
  int fd, backlog;
  if (!PyArg_ParseTuple(args, "ii", &fd, &backlog)) return nullptr;
  if (!server_of(self)->engine->adopt(fd, backlog)) return nullptr;
  return Py_NewRef(server_of(self)->local);
}

PyObject* server_drain(PyObject* self, PyObject* args) {
  double seconds;
  PyObject* done;
  if (!PyArg_ParseTuple(args, "dO", &seconds, &done)) return nullptr;
  server_of(self)->engine->drain(seconds, done);
  Py_RETURN_NONE;
}

PyObject* server_close(PyObject* self, PyObject*) {
  server_of(self)->engine->close();
  Py_RETURN_NONE;
}

PyObject* server_turn(PyObject* self, PyObject*) {
  const Ref kept = Ref::copy(self);
  if (!server_of(self)->engine->turn()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* server_fileno(PyObject* self, PyObject*) {
  const int descriptor = server_of(self)->engine->descriptor();
  return descriptor < 0 ? nullptr : PyLong_FromLong(descriptor);
}

constexpr PyObject* Server::* kObjects[] = {
    &Server::loop,      &Server::run,     &Server::tasks,       &Server::forwarded,
    &Server::tls,       &Server::access,  &Server::scope_state, &Server::environ,
    &Server::root_path, &Server::at_last, &Server::local};

int server_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (const auto object : kObjects) Py_VISIT(server_of(self)->*object);
  Engine* const engine = server_of(self)->engine;
  return engine == nullptr ? 0 : engine->traverse(visit, arg);
}

int server_clear(PyObject* self) {
  for (const auto object : kObjects) Py_CLEAR(server_of(self)->*object);
  if (server_of(self)->engine != nullptr) server_of(self)->engine->clear();
  return 0;
}

void server_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete server_of(self)->engine;
  server_of(self)->engine = nullptr;
  server_clear(self);
  Py_CLEAR(server_of(self)->module);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"listen", server_listen, METH_VARARGS, nullptr},
                         {"adopt", server_adopt, METH_VARARGS, nullptr},
                         {"drain", server_drain, METH_VARARGS, nullptr},
                         {"close", server_close, METH_NOARGS, nullptr},
                         {"turn", server_turn, METH_NOARGS, nullptr},
                         {"fileno", server_fileno, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_new, as_slot(server_new)},
                       {Py_tp_dealloc, as_slot(server_dealloc)},
                       {Py_tp_traverse, as_slot(server_traverse)},
                       {Py_tp_clear, as_slot(server_clear)},
                       {Py_tp_methods, methods},
                       {}};

Ref make_task(Server* server, PyObject* coroutine) {
  const State& names = *server->state;
  if (server->engine->starts_at_once()) {
    PyObject* const call[] = {coroutine, server->loop, names[Name::task_name], Py_True};
    return Ref(PyObject_Vectorcall(names.task, call, 1, names.eager_keywords));
  }
  PyObject* const call[] = {server->loop, coroutine, names[Name::task_name]};
  return Ref(PyObject_VectorcallMethod(names[Name::create_task], call, 2, names.task_keywords));
}

}  // namespace

bool start_task(Server* server, PyObject* scope, PyObject* cycle) {
  const Ref coroutine(PyObject_CallFunctionObjArgs(server->run, scope, cycle, nullptr));
  if (!coroutine) return false;
  if (coroutine.get() == Py_None) return true;
  const Ref task = make_task(server, coroutine.get());
  const State& names = *server->state;
  const Ref done(task ? PyObject_CallMethodNoArgs(task.get(), names[Name::done]) : nullptr);
  // An eager task may have ended already.
  return done && (done.get() == Py_True || PyDict_SetItem(server->tasks, cycle, task.get()) == 0);
}

PyType_Spec server_spec = {"spate_server._native.Server", sizeof(Server), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace spate_server
