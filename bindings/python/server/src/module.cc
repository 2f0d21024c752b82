// The module spate_server._native.
#include "certificate.h"
#include "cycle.h"
#include "server.h"
#include "socket.h"
#include "waiting.h"

namespace spate_server {
namespace {

State* state_of(PyObject* module) { return static_cast<State*>(PyModule_GetState(module)); }

constexpr PyTypeObject* State::* kTypes[] = {&State::server_type, &State::cycle_type,
                                             &State::socket_type, &State::waiting_type,
                                             &State::done_type};
constexpr PyObject* State::* kObjects[] = {
    &State::done,           &State::http_scope, &State::task_keywords,   &State::task,
    &State::eager_keywords, &State::asgi,       &State::http_extensions, &State::socket_extensions,
    &State::disconnected};
constexpr const char* kNames[] = {
#define X(name, text) text,
    SPATE_SERVER_NAMES(X)
#undef X
};

bool make_types(PyObject* module, State* state) {
  PyType_Spec* const specs[] = {&server_spec, &cycle_spec, &socket_spec, &waiting_spec,
                                &done_spec};
  for (std::size_t i = 0; i < std::size(specs); ++i) {
    state->*kTypes[i] =
        reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, specs[i], nullptr));
    if (state->*kTypes[i] == nullptr) return false;
  }
  return PyModule_AddType(module, state->server_type) == 0;
}

// Returns a dict with all keys of a request's scope. A copy of it does not grow when it is filled.
PyObject* make_http_scope(const State& names) {
  Ref scope(PyDict_New());
  const std::pair<Name, PyObject*> items[] = {{Name::type, names[Name::http]},
                                              {Name::scheme, names[Name::http]},
                                              {Name::extensions, names.http_extensions},
                                              {Name::method, names[Name::get]},
                                              {Name::asgi, names.asgi},
                                              {Name::http_version, names[Name::v11]},
                                              {Name::server, Py_None},
                                              {Name::client, Py_None},
                                              {Name::root_path, names[Name::empty]},
                                              {Name::path, names[Name::empty]},
                                              {Name::raw_path, Py_None},
                                              {Name::query_string, Py_None},
                                              {Name::headers, Py_None},
                                              {Name::state, Py_None}};
  for (const auto& [name, value] : items) {
    if (!scope || PyDict_SetItem(scope.get(), names[name], value) < 0) return nullptr;
  }
  return scope.release();
}

bool make_objects(PyObject* module, State* state) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    state->names[i] = PyUnicode_InternFromString(kNames[i]);
    if (state->names[i] == nullptr) return false;
  }
  state->done = state->done_type->tp_alloc(state->done_type, 0);
  state->asgi = Py_BuildValue("{ssss}", "version", "3.0", "spec_version", "2.4");
  state->http_extensions =
      Py_BuildValue("{s{}s{}}", "http.response.pathsend", "http.response.trailers");
  state->socket_extensions = Py_BuildValue("{s{}}", "websocket.http.response");
  state->http_scope = make_http_scope(*state);
  state->task_keywords = PyTuple_Pack(1, (*state)[Name::name]);
  const Ref asyncio(PyImport_ImportModule("asyncio"));
  state->task = asyncio ? PyObject_GetAttrString(asyncio.get(), "Task") : nullptr;
  state->eager_keywords =
      PyTuple_Pack(3, (*state)[Name::loop], (*state)[Name::name], (*state)[Name::eager_start]);
  state->disconnected = PyErr_NewExceptionWithDoc(
      "spate_server.ClientDisconnected", "Raised by send() when the client has disconnected.",
      PyExc_OSError, nullptr);
  for (const auto object : kObjects) {
    if (state->*object == nullptr) return false;
  }
  return PyModule_AddObjectRef(module, "done", state->done) == 0 &&
         PyModule_AddObjectRef(module, "ClientDisconnected", state->disconnected) == 0;
}

int execute(PyObject* module) {
  State* const state = state_of(module);
  return make_types(module, state) && make_objects(module, state) ? 0 : -1;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  for (const auto type : kTypes) Py_VISIT(state_of(module)->*type);
  for (const auto object : kObjects) Py_VISIT(state_of(module)->*object);
  return 0;
}

int clear(PyObject* module) {
  for (const auto type : kTypes) Py_CLEAR(state_of(module)->*type);
  return 0;
}

// The other objects have no reference to the module. Objects that are destroyed later use them.
void release(void* freed) {
  PyObject* const module = static_cast<PyObject*>(freed);
  clear(module);
  for (const auto object : kObjects) Py_CLEAR(state_of(module)->*object);
  for (PyObject*& name : state_of(module)->names) Py_CLEAR(name);
}

PyMethodDef functions[] = {{"subject_of", subject_of, METH_O, nullptr}, {}};
PyModuleDef_Slot slots[] = {{Py_mod_exec, as_slot(execute)},
#if PY_VERSION_HEX >= 0x030C0000
                            {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
                            {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", nullptr, sizeof(State), functions,
                          slots,                 traverse,  clear,   release};

}  // namespace
}  // namespace spate_server

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&spate_server::definition); }
