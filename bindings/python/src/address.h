// Socket addresses, as the kernel represents them, and as Python does.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "python.h"

namespace pyspate {

struct Address {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };

  // Whether it is an address that to_python() knows.
  bool is_internet() const { return any.sa_family == AF_INET || any.sa_family == AF_INET6; }
  // Returns the bytes of an internet address.
  socklen_t size() const { return any.sa_family == AF_INET ? sizeof v4 : sizeof v6; }
};

// Asks the kernel by getsockname() or getpeername(). Returns whether it is an internet address.
bool ask(int fd, int (*function)(int, sockaddr*, socklen_t*), Address* address);
// Returns the tuple that Python's sockets have for an internet address.
Ref to_python(const Address& address);
// Parses such a tuple into an address of the family. Returns false without an exception if Python's
// sockets have to parse it: it is another type, or has a name instead of an address.
bool from_python(PyObject* tuple, int family, Address* address);
// Parses a host that is an address and a port. Returns false, without an exception, for others.
bool parse_literal(PyObject* host, PyObject* port, Address* address);

// Addresses of datagrams that a loop has seen last, with their tuples. Filled with zeros, it is
// empty.
class AddressCache {
 public:
  // Returns the tuple of an address that the kernel has returned.
  Ref find_tuple(const Address& address);
  // Returns the address of a tuple; null, without an exception, as from_python() fails.
  const Address* find_address(PyObject* tuple, int family);
  void free();

 private:
  struct Entry {
    Address address;
    PyObject* tuple;
    bool is_canonical;  // The tuple is as to_python() makes it.
  };

  Entry* entry_of(unsigned port);
  static void fill_in(Entry* entry, const Address& address, PyObject* tuple, bool is_canonical);

  Entry* entries_;
};

// parse_literal(text, port): returns that tuple, or None if the text is no address.
PyObject* core_parse_literal(PyObject* module, PyObject* arguments);

}  // namespace pyspate
