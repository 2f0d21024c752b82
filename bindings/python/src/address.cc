#include "address.h"

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace pyspate {
namespace {

constexpr unsigned kCached = 256;  // A power of two.

// Returns a number between 0 and `most`; -1 if the object is none.
long number_in(PyObject* object, long most) {
  if (!PyLong_CheckExact(object)) return -1;
  int overflow;
  const long number = PyLong_AsLongAndOverflow(object, &overflow);
  return overflow == 0 && number <= most ? number : -1;
}

// Returns the port of an address tuple; -1 if it is none.
long port_of(PyObject* tuple) {
  if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) < 2) return -1;
  return number_in(PyTuple_GET_ITEM(tuple, 1), 65535);
}

// Parses an address of either family.
bool parse(const char* text, long port, Address* address) {
  std::memset(static_cast<void*>(address), 0, sizeof *address);
  if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
    address->v4.sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1) {
    address->v6.sin6_family = AF_INET6;
  } else {
    return false;
  }
  address->v4.sin_port = htons(static_cast<std::uint16_t>(port));  // Where that of v6 is, too.
  return true;
}

}  // namespace

bool ask(int fd, int (*function)(int, sockaddr*, socklen_t*), Address* address) {
  socklen_t size = sizeof *address;
  address->any.sa_family = AF_UNSPEC;
  if (function(fd, &address->any, &size) == 0 && address->is_internet()) return true;
  address->any.sa_family = AF_UNSPEC;
  return false;
}

Ref to_python(const Address& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof text);
    return Ref(Py_BuildValue("si", text, ntohs(address.v4.sin_port)));
  }
  inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof text);
  return Ref(Py_BuildValue("siII", text, ntohs(address.v6.sin6_port),
                           ntohl(address.v6.sin6_flowinfo), address.v6.sin6_scope_id));
}

bool from_python(PyObject* tuple, int family, Address* address) {
  const long port = port_of(tuple);
  PyObject* const host = port < 0 ? nullptr : PyTuple_GET_ITEM(tuple, 0);
  if (host == nullptr || !PyUnicode_CheckExact(host)) return false;
  Py_ssize_t length;
  const char* const text = PyUnicode_AsUTF8AndSize(host, &length);
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  std::memset(static_cast<void*>(address), 0, sizeof *address);
  if (static_cast<std::size_t>(length) != std::strlen(text)) return false;
  if (family == AF_INET) {
    if (size != 2 || inet_pton(AF_INET, text, &address->v4.sin_addr) != 1) return false;
  } else {
    const long flow = size > 2 ? number_in(PyTuple_GET_ITEM(tuple, 2), 0xfffff) : 0;
    const long scope = size > 3 ? number_in(PyTuple_GET_ITEM(tuple, 3), 0xffffffffL) : 0;
    if (family != AF_INET6 || size > 4 || flow < 0 || scope < 0) return false;
    if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) != 1) return false;
    address->v6.sin6_flowinfo = htonl(static_cast<std::uint32_t>(flow));
    address->v6.sin6_scope_id = static_cast<std::uint32_t>(scope);
  }
  address->any.sa_family = static_cast<sa_family_t>(family);
  address->v4.sin_port = htons(static_cast<std::uint16_t>(port));  // Where that of v6 is, too.
  return true;
}

AddressCache::Entry* AddressCache::entry_of(unsigned port) {
  if (entries_ == nullptr) {
    entries_ = static_cast<Entry*>(PyMem_RawCalloc(kCached, sizeof(Entry)));
    if (entries_ == nullptr) return nullptr;
  }
  return &entries_[port % kCached];
}

void AddressCache::fill_in(Entry* entry, const Address& address, PyObject* tuple,
                           bool is_canonical) {
  const Ref before(std::exchange(entry->tuple, Py_NewRef(tuple)));
  std::memcpy(static_cast<void*>(&entry->address), &address, sizeof address);
  entry->is_canonical = is_canonical;
}

Ref AddressCache::find_tuple(const Address& address) {
  Entry* const entry = entry_of(ntohs(address.v4.sin_port));
  if (entry != nullptr && entry->is_canonical &&
      std::memcmp(&entry->address, &address, address.size()) == 0) {
    return Ref::copy(entry->tuple);
  }
  Ref tuple = to_python(address);
  if (tuple && entry != nullptr) fill_in(entry, address, tuple.get(), true);
  return tuple;
}

const Address* AddressCache::find_address(PyObject* tuple, int family) {
  const long port = port_of(tuple);
  Entry* const entry = port < 0 ? nullptr : entry_of(static_cast<unsigned>(port));
  if (entry == nullptr) return nullptr;
  if (entry->tuple == tuple && entry->address.any.sa_family == family) return &entry->address;
  Address address;
  if (!from_python(tuple, family, &address)) return nullptr;
  fill_in(entry, address, tuple, false);
  return &entry->address;
}

void AddressCache::free() {
  for (unsigned i = 0; entries_ != nullptr && i < kCached; ++i) Py_CLEAR(entries_[i].tuple);
  PyMem_RawFree(std::exchange(entries_, nullptr));
}

PyObject* core_parse_literal(PyObject*, PyObject* arguments) {
  const char* text;
  int port;
  if (!PyArg_ParseTuple(arguments, "si", &text, &port)) return nullptr;
  Address address;
  if (!parse(text, port, &address)) Py_RETURN_NONE;
  return to_python(address).release();
}

bool parse_literal(PyObject* host, PyObject* port, Address* address) {
  const long number = number_in(port, 65535);
  if (number < 0 || !PyUnicode_CheckExact(host)) return false;
  Py_ssize_t length;
  const char* const text = PyUnicode_AsUTF8AndSize(host, &length);
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  return static_cast<std::size_t>(length) == std::strlen(text) && parse(text, number, address);
}

}  // namespace pyspate
