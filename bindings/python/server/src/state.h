// The state of the module: its types and the names that it looks up. It is not global, so that each
// interpreter has its own.
#pragma once

#include <string_view>

#include "../../src/python.h"

namespace spate_server {

using pyspate::as_method;
using pyspate::as_slot;
using pyspate::ExceptionKeeper;
using pyspate::Ref;
using pyspate::take_exception;

#define SPATE_SERVER_NAMES(X)                                                                  \
  X(type, "type") X(asgi, "asgi") X(http_version, "http_version") X(server, "server")          \
  X(client, "client") X(scheme, "scheme") X(method, "method") X(root_path, "root_path")        \
  X(path, "path") X(raw_path, "raw_path") X(query_string, "query_string")                      \
  X(headers, "headers") X(state, "state") X(extensions, "extensions")                          \
  X(subprotocols, "subprotocols") X(subprotocol, "subprotocol") X(status, "status")            \
  X(body, "body") X(more_body, "more_body") X(trailers, "trailers")                            \
  X(more_trailers, "more_trailers") X(text, "text") X(bytes, "bytes") X(code, "code")          \
  X(reason, "reason") X(http, "http") X(https, "https") X(websocket, "websocket") X(ws, "ws")  \
  X(wss, "wss") X(v10, "1.0") X(v11, "1.1") X(v20, "2") X(empty, "")                           \
  X(request, "http.request") X(disconnect, "http.disconnect")                                  \
  X(ws_connect, "websocket.connect") X(ws_receive, "websocket.receive")                        \
  X(ws_disconnect, "websocket.disconnect") X(create_future, "create_future")                   \
  X(set_result, "set_result") X(create_task, "create_task") X(done, "done")                    \
  X(call_soon, "call_soon")                                                                    \
  X(tls, "tls") X(call_later, "call_later") X(cancel, "cancel") X(turn, "turn")                \
  X(request_method, "REQUEST_METHOD") X(path_info, "PATH_INFO")                                \
  X(query, "QUERY_STRING") X(protocol, "SERVER_PROTOCOL") X(remote_addr, "REMOTE_ADDR")        \
  X(remote_port, "REMOTE_PORT") X(url_scheme, "wsgi.url_scheme") X(http_10, "HTTP/1.0")        \
  X(http_11, "HTTP/1.1") X(http_2, "HTTP/2") X(http_host, "HTTP_HOST") X(name, "name")         \
  X(task_name, "spate-request") X(loop, "loop")                                                \
  X(eager_start, "eager_start") X(get_task_factory, "get_task_factory") X(get, "GET")          \
  X(post, "POST")

enum class Name {
#define X(name, text) name,
  SPATE_SERVER_NAMES(X)
#undef X
      count
};

struct State {
  PyObject* names[static_cast<int>(Name::count)];
  PyTypeObject* server_type;
  PyTypeObject* cycle_type;
  PyTypeObject* socket_type;
  PyTypeObject* waiting_type;
  PyTypeObject* done_type;
  PyObject* done;               // The Done that send() returns.
  PyObject* http_scope;         // A scope with the values that most requests have.
  PyObject* task_keywords;      // ("name",)
  PyObject* task;               // asyncio.Task
  PyObject* eager_keywords;     // ("loop", "name", "eager_start")
  PyObject* asgi;               // scope["asgi"].
  PyObject* http_extensions;    // scope["extensions"] of a request.
  PyObject* socket_extensions;  // scope["extensions"] of a WebSocket.
  PyObject* disconnected;       // The exception of send() after the client has left.

  PyObject* operator[](Name name) const { return names[static_cast<int>(name)]; }
};

inline PyObject* text_of(std::string_view text) {
  return PyUnicode_DecodeLatin1(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
}
inline PyObject* bytes_object(std::string_view text) {
  return PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
// Sets an item of a new dict; takes over the value, which may be null after an error.
inline bool put(PyObject* dict, PyObject* key, PyObject* owned) {
  const Ref value(owned);
  return value && PyDict_SetItem(dict, key, value.get()) == 0;
}
// Returns an item, borrowed; null without an exception if it is absent or None.
inline PyObject* item(PyObject* dict, PyObject* key) {
  PyObject* const found = PyDict_GetItemWithError(dict, key);
  return found == Py_None ? nullptr : found;
}
// Returns whether an item is present and true; -1 with an exception.
inline int flag(PyObject* dict, PyObject* key) {
  PyObject* const found = item(dict, key);
  if (found == nullptr) return PyErr_Occurred() != nullptr ? -1 : 0;
  return PyObject_IsTrue(found);
}

}  // namespace spate_server
