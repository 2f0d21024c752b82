// The module spate._core.
#include <cstdlib>

#include "address.h"
#include "core.h"
#include "state.h"

namespace pyspate {
namespace {

struct Holder {
  State* state;
};

State* state_of(PyObject* module) { return static_cast<Holder*>(PyModule_GetState(module))->state; }

struct NamedObject {
  PyObject* Lookups::* place;
  const char* module;
  const char* path;  // May name an attribute of an attribute.
};

constexpr NamedObject kLookups[] = {
    {&Lookups::asyncio_handle, "asyncio.events", "Handle"},
    {&Lookups::asyncio_timer, "asyncio.events", "TimerHandle"},
    {&Lookups::buffered_protocol, "asyncio.protocols", "BufferedProtocol"},
    {&Lookups::socket, "socket", "socket"},
    {&Lookups::socket_view, "asyncio.trsock", "TransportSocket"},
    {&Lookups::sendfile_mode, "asyncio.constants", "_SendfileMode.TRY_NATIVE"},
    {&Lookups::task, "asyncio.tasks", "Task"},
    {&Lookups::future, "asyncio.futures", "Future"},
    {&Lookups::create_task, "asyncio.base_events", "BaseEventLoop.create_task"},
    {&Lookups::finish_waiter, "asyncio.futures", "_set_result_unless_cancelled"},
    {&Lookups::tls_established, "asyncio.sslproto", "SSLProtocolState.WRAPPED"},
    {&Lookups::tls_buffer_updated, "asyncio.sslproto", "SSLProtocol.buffer_updated"},
    {&Lookups::datagram_read_ready, "asyncio.selector_events",
     "_SelectorDatagramTransport._read_ready"},
    {&Lookups::datagram_sendto, "asyncio.selector_events", "_SelectorDatagramTransport.sendto"},
    {&Lookups::pipe_read_ready, "asyncio.unix_events", "_UnixReadPipeTransport._read_ready"},
    {&Lookups::pipe_write, "asyncio.unix_events", "_UnixWritePipeTransport.write"},
    {&Lookups::pipe_write_ready, "asyncio.unix_events", "_UnixWritePipeTransport._write_ready"},
    {&Lookups::describe_handle, "spate.support", "describe_handle"},
    {&Lookups::capture_stack, "spate.support", "capture_stack"},
    {&Lookups::report, "spate.support", "report"},
    {&Lookups::run_in_debug_mode, "spate.support", "run_in_debug_mode"},
    {&Lookups::warn_of_lost_write, "spate.support", "warn_of_lost_write"},
};

struct NamedText {
  PyObject* Names::* place;
  const char* text;
};

constexpr NamedText kNames[] = {
    {&Names::context, "context"},
    {&Names::loop, "loop"},
    {&Names::name, "name"},
    {&Names::time, "time"},
    {&Names::thread_id, "_thread_id"},
    {&Names::getsockname, "getsockname"},
    {&Names::getpeername, "getpeername"},
    {&Names::peername, "peername"},
    {&Names::sockname, "sockname"},
    {&Names::socket, "socket"},
    {&Names::close, "close"},
    {&Names::setblocking, "setblocking"},
    {&Names::start, "_start"},
    {&Names::attach, "_attach"},
    {&Names::detach, "_detach"},
    {&Names::connection_made, "connection_made"},
    {&Names::connection_lost, "connection_lost"},
    {&Names::data_received, "data_received"},
    {&Names::datagram_received, "datagram_received"},
    {&Names::error_received, "error_received"},
    {&Names::get_buffer, "get_buffer"},
    {&Names::buffer_updated, "buffer_updated"},
    {&Names::eof_received, "eof_received"},
    {&Names::pause_writing, "pause_writing"},
    {&Names::resume_writing, "resume_writing"},
    {&Names::set_result, "set_result"},
    {&Names::set_exception, "set_exception"},
    {&Names::done, "done"},
    {&Names::add_done_callback, "add_done_callback"},
    {&Names::write, "write"},
    {&Names::write_ready, "_write_ready"},
    {&Names::maybe_pause_protocol, "_maybe_pause_protocol"},
    {&Names::maybe_resume_protocol, "_maybe_resume_protocol"},
    {&Names::call_connection_lost, "_call_connection_lost"},
    {&Names::write_appdata, "_write_appdata"},
    {&Names::do_read, "_do_read"},
    {&Names::do_write, "_do_write"},
    {&Names::process_outgoing, "_process_outgoing"},
    {&Names::control_ssl_reading, "_control_ssl_reading"},
};

PyObject* look_up(const NamedObject& named) {
  Ref object(PyImport_ImportModule(named.module));
  const Ref path(PyUnicode_FromString(named.path));
  const Ref dot(PyUnicode_FromString("."));
  const Ref names(path && dot ? PyUnicode_Split(path.get(), dot.get(), -1) : nullptr);
  if (!names) return nullptr;
  for (Py_ssize_t i = 0; object && i < PyList_GET_SIZE(names.get()); ++i) {
    object = Ref(PyObject_GetAttr(object.get(), PyList_GET_ITEM(names.get(), i)));
  }
  return object.release();
}

bool fill_in(State* state) {
  for (const NamedText& named : kNames) {
    PyObject*& place = state->names.*named.place;
    place = PyUnicode_InternFromString(named.text);
    if (place == nullptr) return false;
  }
  for (const NamedObject& named : kLookups) {
    PyObject*& place = state->lookups.*named.place;
    place = look_up(named);
    if (place == nullptr) return false;
  }
  load(state->openssl);
  state->loop_keyword = PyTuple_Pack(1, state->names.loop);
  state->task_keywords = PyTuple_Pack(2, state->names.loop, state->names.name);
  state->minus_one = PyLong_FromLong(-1);
  return state->loop_keyword != nullptr && state->task_keywords != nullptr &&
         state->minus_one != nullptr;
}

struct NamedType {
  PyTypeObject* State::* place;
  PyTypeObject* (*make)(PyObject* module);
  bool is_attribute;  // The module has it as an attribute.
};

constexpr NamedType kTypes[] = {
    {&State::handle_type, make_handle_type, true},
    {&State::core_type, make_core_type, true},
    {&State::transport_type, make_transport_type, true},
    {&State::socket_call_type, make_socket_call_type, false},
    {&State::tls_engine_type, make_tls_engine_type, true},
    {&State::datagram_engine_type, make_datagram_engine_type, true},
    {&State::read_pipe_engine_type, make_read_pipe_engine_type, true},
    {&State::write_pipe_engine_type, make_write_pipe_engine_type, true},
    {&State::piece_queue_type, make_piece_queue_type, true},
};

bool make_types(PyObject* module, State* state) {
  for (const NamedType& named : kTypes) {
    PyTypeObject*& place = state->*named.place;
    place = named.make(module);
    if (place == nullptr || (named.is_attribute && PyModule_AddType(module, place) < 0)) {
      return false;
    }
  }
  state->lookups.core_time =
      PyObject_GetAttr(reinterpret_cast<PyObject*>(state->core_type), state->names.time);
  return state->lookups.core_time != nullptr;
}

int module_exec(PyObject* module) {
  auto* const state = static_cast<State*>(std::calloc(1, sizeof(State)));
  if (state == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  state->owners = 1;
  static_cast<Holder*>(PyModule_GetState(module))->state = state;
  return fill_in(state) && make_types(module, state) ? 0 : -1;
}

// Calls `visit` for each reference that the state owns.
template <class Visit>
void for_each_reference(State* state, Visit visit) {
  for (const NamedText& named : kNames) visit(state->names.*named.place);
  for (const NamedObject& named : kLookups) visit(state->lookups.*named.place);
  visit(state->lookups.core_time);
  visit(state->loop_keyword);
  visit(state->task_keywords);
  visit(state->minus_one);
}

int module_traverse(PyObject* module, visitproc visitor, void* arg) {
  State* const state = state_of(module);
  int result = 0;
  if (state == nullptr) return result;
  const auto visit = [&](PyObject* object) {
    if (result == 0 && object != nullptr) result = visitor(object, arg);
  };
  for_each_reference(state, visit);
  for (const NamedType& named : kTypes) visit(reinterpret_cast<PyObject*>(state->*named.place));
  return result;
}

void module_free(void* module) {
  State* const state = state_of(static_cast<PyObject*>(module));
  if (state != nullptr) release(state);
}

PyObject* note_fork(PyObject* module, PyObject*) {
  ++state_of(module)->forks;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"note_fork", note_fork, METH_NOARGS,
                            "Makes the loops of this interpreter follow it into a forked child."},
                           {"parse_literal", core_parse_literal, METH_VARARGS,
                            "Returns the socket address of an internet address and a port."},
                           {}};
PyModuleDef_Slot slots[] = {{Py_mod_exec, as_slot(module_exec)},
#if PY_VERSION_HEX >= 0x030C0000
                            {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
                            {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "spate._core", nullptr,
                          sizeof(Holder),        functions,     slots,
                          module_traverse,       nullptr,       module_free};

}  // namespace

State* state_of_type(PyTypeObject* type) {
  PyObject* const module = PyType_GetModuleByDef(type, &definition);
  return module == nullptr ? nullptr : state_of(module);
}

void release(State* state) {
  if (--state->owners > 0) return;
  // While their type exists: PyObject_GC_Del() reads it.
  while (state->free_count > 0) PyObject_GC_Del(state->free_handles[--state->free_count]);
  for_each_reference(state, [](PyObject*& object) { Py_CLEAR(object); });
  for (const NamedType& named : kTypes) Py_CLEAR(state->*named.place);
  std::free(state);
}

}  // namespace pyspate

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&pyspate::definition); }
