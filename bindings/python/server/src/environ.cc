// The environ of WSGI: what CGI has as variables (RFC 3875), and the keys of PEP 3333.
#include "scope.h"

namespace spate_server {
namespace {

using spate::http::Field;
using spate::http::FieldId;
using spate::http::Request;
using spate::http::Version;

// Returns the key of a header: HTTP_ACCEPT, CONTENT_TYPE.
PyObject* make_key(std::string_view name) {
  std::string key;
  for (const char c : name) {
    const bool is_lower = c >= 'a' && c <= 'z';
    key += c == '-' ? '_' : is_lower ? static_cast<char>(c - ('a' - 'A')) : c;
  }
  if (key != "CONTENT_TYPE" && key != "CONTENT_LENGTH") key.insert(0, "HTTP_");
  return text_of(key);
}

// Keys of known headers are made once.
PyObject* key_of(Server* server, const Field& field) {
  const auto id = static_cast<std::size_t>(field.id);
  if (field.id == FieldId::other || id >= Engine::kIds) return make_key(field.name);
  PyObject*& known = server->engine->environ_names[id];
  if (known == nullptr) known = make_key(field.name);
  return Py_XNewRef(known);
}

// Joins the values of headers that have the same name.
bool add_header(Server* server, PyObject* environ, const Field& field) {
  // Its key would be that of another header, which a proxy may have checked.
  if (field.name.find('_') != field.name.npos) return true;
  const Ref key(key_of(server, field));
  Ref value(text_of(field.value));
  if (!key || !value) return false;
  PyObject* const before = PyDict_GetItemWithError(environ, key.get());
  if (before != nullptr) {
    const char* const form = field.id == FieldId::cookie ? "%U; %U" : "%U,%U";
    value = Ref(PyUnicode_FromFormat(form, before, value.get()));
  }
  return PyErr_Occurred() == nullptr && PyDict_SetItem(environ, key.get(), value.get()) == 0;
}

// HTTP/2 has the host in a pseudo-header.
bool add_headers(Server* server, PyObject* environ, const Request& request) {
  const auto& fields = request.fields();
  if (!fields.contains(FieldId::host) && !request.host().empty() &&
      !put(environ, (*server->state)[Name::http_host], text_of(request.host()))) {
    return false;
  }
  for (const Field field : fields) {
    if (!add_header(server, environ, field)) return false;
  }
  return true;
}

bool put_client(const State& names, PyObject* environ, PyObject* client) {
  if (client == nullptr || !PyTuple_Check(client)) return PyErr_Occurred() == nullptr;
  return PyDict_SetItem(environ, names[Name::remote_addr], PyTuple_GET_ITEM(client, 0)) == 0 &&
         put(environ, names[Name::remote_port], PyObject_Str(PyTuple_GET_ITEM(client, 1)));
}

// Adds the client and the scheme, which a proxy may have sent.
bool put_origin(Server* server, PyObject* environ, const Request& request) {
  const State& names = *server->state;
  if (!is_forwarded(server, request)) {
    const Ref client(client_of(server, request.peer()));
    return put_client(names, environ, client.get()) &&
           PyDict_SetItem(environ, names[Name::url_scheme],
                          names[request.is_secure() ? Name::https : Name::http]) == 0;
  }
  const Ref scope(make_scope(server, request, false));
  if (!scope) return false;
  PyObject* const scheme = item(scope.get(), names[Name::scheme]);
  return scheme != nullptr && put_client(names, environ, item(scope.get(), names[Name::client])) &&
         PyDict_SetItem(environ, names[Name::url_scheme], scheme) == 0;
}

Name protocol_of(Version version) {
  if (version == Version::http_1_1) return Name::http_11;
  return version == Version::http_1_0 ? Name::http_10 : Name::http_2;
}

}  // namespace

PyObject* make_environ(Server* server, const Request& request) {
  const State& names = *server->state;
  Ref made(PyDict_Copy(server->environ));
  if (!made) return nullptr;
  PyObject* const environ = made.get();
  const bool is_filled =
      put(environ, names[Name::request_method], text_of(request.method_name())) &&
      put(environ, names[Name::path_info], text_of(decoded(request.path()))) &&
      put(environ, names[Name::query], text_of(request.query())) &&
      PyDict_SetItem(environ, names[Name::protocol], names[protocol_of(request.version())]) == 0 &&
      put_origin(server, environ, request) && add_headers(server, environ, request);
  return is_filled ? made.release() : nullptr;
}

}  // namespace spate_server
