#include "scope.h"

#include <charconv>
#include <string>

namespace spate_server {
namespace {

using spate::http::Field;
using spate::http::FieldId;
using spate::http::FieldsView;
using spate::http::Request;
using spate::http::Version;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

PyObject* path_of(Server* server, std::string_view raw) {
  const std::string plain = raw.find('%') == raw.npos ? std::string() : decoded(raw);
  const std::string_view path = plain.empty() ? raw : std::string_view(plain);
  Ref text(PyUnicode_DecodeUTF8(path.data(), static_cast<Py_ssize_t>(path.size()), "replace"));
  if (!text || PyUnicode_GET_LENGTH(server->root_path) == 0) return text.release();
  return PyUnicode_Concat(server->root_path, text.get());
}

PyObject* lower_name(std::string_view name) {
  PyObject* const bytes = bytes_object(name);
  if (bytes == nullptr) return nullptr;
  char* const text = PyBytes_AS_STRING(bytes);
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (text[i] >= 'A' && text[i] <= 'Z') text[i] = static_cast<char>(text[i] + ('a' - 'A'));
  }
  return bytes;
}

// Returns the name in lower case. Known names are made once.
PyObject* name_of(Server* server, const Field& field) {
  const auto id = static_cast<std::size_t>(field.id);
  if (field.id == FieldId::other || id >= Engine::kIds) return lower_name(field.name);
  PyObject*& known = server->engine->field_names[id];
  if (known == nullptr) known = lower_name(field.name);
  return Py_XNewRef(known);
}

// Returns (name, value); takes over both, either of which may be null.
PyObject* pair(PyObject* name, PyObject* value) {
  Ref first(name), second(value);
  PyObject* const made = first && second ? PyTuple_New(2) : nullptr;
  if (made == nullptr) return nullptr;
  PyTuple_SET_ITEM(made, 0, first.release());
  PyTuple_SET_ITEM(made, 1, second.release());
  return made;
}

// HTTP/2 has the host in a pseudo-header. ASGI has it as a header, and first.
PyObject* headers_of(Server* server, const Request& request) {
  const FieldsView& fields = request.fields();
  const bool adds_host = !fields.contains(FieldId::host) && !request.host().empty();
  Ref list(PyList_New(static_cast<Py_ssize_t>(fields.size() + adds_host)));
  if (!list) return nullptr;
  Py_ssize_t at = 0;
  if (adds_host) {
    PyObject* const made = pair(bytes_object("host"), bytes_object(request.host()));
    if (made == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), at++, made);
  }
  for (const Field field : fields) {
    PyObject* const made = pair(name_of(server, field), bytes_object(field.value));
    if (made == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), at++, made);
  }
  return list.release();
}

PyObject* subprotocols_of(const Request& request) {
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  for (const std::string_view offered : request.fields().list("Sec-WebSocket-Protocol")) {
    const Ref text(text_of(offered));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* version_of(const State& names, Version version) {
  if (version == Version::http_1_1) return names[Name::v11];
  return names[version == Version::http_1_0 ? Name::v10 : Name::v20];
}

// Returns scope["extensions"]: `plain`, and the extension tls of a connection with TLS.
PyObject* extensions_of(Server* server, const Request& request, PyObject* plain) {
  const auto info = request.tls();
  if (!info) return Py_NewRef(plain);
  const std::string_view certificate(reinterpret_cast<const char*>(info->certificate.data()),
                                     info->certificate.size());
  Ref extensions(PyDict_Copy(plain));
  if (!extensions) return nullptr;
  PyObject* const tls =
      PyObject_CallFunction(server->tls, "NNN", text_of(info->version), text_of(info->cipher),
                            bytes_object(certificate));
  return put(extensions.get(), (*server->state)[Name::tls], tls) ? extensions.release() : nullptr;
}

PyObject* method_of(const State& names, const Request& request) {
  switch (request.method()) {
    case spate::http::Method::get:
      return Py_NewRef(names[Name::get]);
    case spate::http::Method::post:
      return Py_NewRef(names[Name::post]);
    default:
      return text_of(request.method_name());
  }
}

// Adds what scopes of the same kind have in common.
bool put_common(Server* server, PyObject* scope, const Request& request, bool is_websocket) {
  const State& names = *server->state;
  if (is_websocket && PyDict_SetItem(scope, names[Name::asgi], names.asgi) < 0) return false;
  const Version version = request.version();
  if ((is_websocket || version != Version::http_1_1) &&
      PyDict_SetItem(scope, names[Name::http_version], version_of(names, version)) < 0) {
    return false;
  }
  return (!is_websocket && PyUnicode_GET_LENGTH(server->root_path) == 0) ||
         PyDict_SetItem(scope, names[Name::root_path], server->root_path) == 0;
}

bool put_kind(Server* server, PyObject* scope, const Request& request, bool is_websocket) {
  const State& names = *server->state;
  const bool is_secure = request.is_secure();
  if (is_websocket) {
    return PyDict_SetItem(scope, names[Name::type], names[Name::websocket]) == 0 &&
           PyDict_SetItem(scope, names[Name::scheme],
                          names[is_secure ? Name::wss : Name::ws]) == 0 &&
           put(scope, names[Name::extensions],
               extensions_of(server, request, names.socket_extensions)) &&
           put(scope, names[Name::subprotocols], subprotocols_of(request));
  }
  // The template has the rest.
  return (!is_secure || (PyDict_SetItem(scope, names[Name::scheme], names[Name::https]) == 0 &&
                         put(scope, names[Name::extensions],
                             extensions_of(server, request, names.http_extensions)))) &&
         put(scope, names[Name::method], method_of(names, request));
}

bool apply_forwarded(Server* server, const Request& request, PyObject* scope) {
  if (!is_forwarded(server, request)) return true;
  return static_cast<bool>(Ref(PyObject_CallOneArg(server->forwarded, scope)));
}

bool is_own(FieldId id) {
  switch (id) {
    case FieldId::connection:
    case FieldId::date:
    case FieldId::keep_alive:
    case FieldId::te:
    case FieldId::transfer_encoding:
    case FieldId::upgrade:
      return true;
    default:
      return false;
  }
}

bool add_header(std::string_view name, std::string_view value, spate::http::Fields& fields,
                std::optional<std::uint64_t>& size) {
  const FieldId id = spate::http::field_id_of(name);
  if (is_own(id)) return true;
  if (id == FieldId::content_length) {
    std::uint64_t number = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && (!size || *size == number)) {
      size = number;
      return true;
    }
  } else if (fields.add(name, value)) {
    return true;
  }
  PyErr_Format(PyExc_ValueError, "the header %.100s cannot be sent", std::string(name).c_str());
  return false;
}

std::string_view view_of(PyObject* bytes) {
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

}  // namespace

PyObject* pair_of(const spate::Address& address) {
  if (!address.is_ip()) Py_RETURN_NONE;
  return Py_BuildValue("(Ni)", text_of(address.host()), address.port());
}

std::string decoded(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_escape =
        path[i] == '%' && i + 2 < path.size() && digit(path[i + 1]) >= 0 && digit(path[i + 2]) >= 0;
    if (is_escape) {
      out += static_cast<char>(digit(path[i + 1]) * 16 + digit(path[i + 2]));
      i += 2;
    } else {
      out += path[i];
    }
  }
  return out;
}

bool wants_websocket(const Request& request) {
  return request.method() == spate::http::Method::get &&
         request.fields().list(FieldId::upgrade).contains("websocket");
}

bool is_forwarded(Server* server, const Request& request) {
  const FieldsView& fields = request.fields();
  return server->forwarded != Py_None &&
         (fields.contains(FieldId::x_forwarded_for) || fields.contains(FieldId::x_forwarded_proto));
}

// Pairs are kept: the last one of each two ports, modulo kClients. Linux gives a socket that
// connects an even port if one is free.
PyObject* client_of(Server* server, const spate::Address& peer) {
  if (!peer.is_ip()) Py_RETURN_NONE;
  auto& [address, pair] = server->engine->clients[peer.port() / 2 % Engine::kClients];
  if (!pair || address != peer) {
    pair = Ref(pair_of(peer));
    address = peer;
  }
  return Py_XNewRef(pair.get());
}

PyObject* make_scope(Server* server, const Request& request, bool is_websocket) {
  const State& names = *server->state;
  Ref made(is_websocket ? PyDict_New() : PyDict_Copy(names.http_scope));
  if (!made) return nullptr;
  PyObject* const scope = made.get();
  const bool is_filled = put_kind(server, scope, request, is_websocket) &&
                         put_common(server, scope, request, is_websocket) &&
                         PyDict_SetItem(scope, names[Name::server], server->local) == 0 &&
                         put(scope, names[Name::client], client_of(server, request.peer())) &&
                         put(scope, names[Name::path], path_of(server, request.path())) &&
                         put(scope, names[Name::raw_path], bytes_object(request.path())) &&
                         put(scope, names[Name::query_string], bytes_object(request.query())) &&
                         put(scope, names[Name::headers], headers_of(server, request)) &&
                         put(scope, names[Name::state], PyDict_Copy(server->scope_state)) &&
                         apply_forwarded(server, request, scope);
  return is_filled ? made.release() : nullptr;
}

bool read_headers(PyObject* headers, spate::http::Fields& fields,
                  std::optional<std::uint64_t>& size) {
  const Ref list(PySequence_Fast(headers, "headers must be a list of pairs"));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    const Ref header(PySequence_Fast(PySequence_Fast_GET_ITEM(list.get(), i),
                                     "a header must be a pair"));
    if (!header) return false;
    PyObject* const* const parts = PySequence_Fast_ITEMS(header.get());
    if (PySequence_Fast_GET_SIZE(header.get()) != 2 || !PyBytes_Check(parts[0]) ||
        !PyBytes_Check(parts[1])) {
      PyErr_SetString(PyExc_TypeError, "a header must be a pair of bytes");
      return false;
    }
    if (!add_header(view_of(parts[0]), view_of(parts[1]), fields, size)) return false;
  }
  return true;
}

}  // namespace spate_server
