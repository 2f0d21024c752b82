// A connection on a stream socket: the transport of a protocol.
#pragma once

#include <spate.h>

#include "address.h"
#include "core.h"
#include "derived.h"
#include "pieces.h"

namespace pyspate {

// Follows the slots of asyncio.transports._FlowControlMixin, from which the type derives.
struct Transport {
  PyObject* self;  // The object that contains this.
  Core* core;      // A strong reference, like all below.
  PyObject* protocol;
  PyObject* sock;     // Owns the descriptor. If null, the transport does.
  PyObject* server;   // Or null.
  PyObject* context;  // The context of the protocol's methods.
  PyObject* extra;    // The extra info that a program asked for.
  PyObject* empty_waiter;
  PyObject* weak;
  PyObject* dict;
  Ring<Piece> queue;
  std::size_t queued, high_water, low_water;
  Transport *previous, *next;  // Links of the list of transports that the loop keeps alive.
  Address local, peer;         // If it is an internet connection.
  spate_io io;
  std::uint32_t events;  // SPATE_READ, SPATE_WRITE.
  int fd;
  int proto;  // For the socket that socket_of() makes; -1: the kernel's.
  int lost;  // 1 plus the number of writes after the connection was lost.
  bool is_open;  // The descriptor is.
  bool is_held, is_written, is_started, is_closing, is_paused, is_at_end, is_buffered;
  bool is_protocol_paused, has_written_eof, reads_much, is_protocol_connected;
};

inline constexpr std::size_t kHighWater = 64 * 1024;  // The default limit of the queue.

inline Transport* transport_of(PyObject* self) { return native_of<Transport>(self); }

// ---- transport.cc
// A connection without a Python socket.
struct Connection {
  int fd;
  Address peer{};  // If it is known.
  int proto = -1;  // An accepted socket has its listener's, as asyncio's do; -1: the kernel's.
  PyObject* protocol;
  PyObject* waiter = Py_None;  // A future that is fulfilled after connection_made(), or None.
  PyObject* server = Py_None;
};
// Makes the transport of the connection. It owns the descriptor, and closes it if that fails.
Ref make_transport(Core* core, const Connection& connection);
// Returns the Python socket, which is made when it is needed first. It is closed if the transport
// is.
PyObject* socket_of(Transport* transport);
void watch(Transport* transport, std::uint32_t events);
// Keeps the transport alive until the protocol's connection_lost().
void hold(Transport* transport);
void release_held(Core* core);
int visit_held(Core* core, visitproc visit, void* arg);
// Calls the method with this name in a later turn, in the transport's context.
bool call_later_turn(Transport* transport, PyObject* method, PyObject* argument);
void force_close(Transport* transport, PyObject* exception);
void close(Transport* transport);
// Closes the connection because of the current exception. Returns 0, or -1 if the exception must
// leave the loop.
int fail(Transport* transport, const char* message);
// Calls a method of the protocol, in the transport's context if `in_context`.
Ref call_protocol(Transport* transport, PyObject* name, PyObject* argument, bool in_context);

// ---- extra.cc
// Takes the given extra info, or None, and the addresses.
bool set_extra(Transport* transport, PyObject* given);
PyObject* transport_get_extra_info(PyObject* self, PyObject* arguments, PyObject* keywords);
// Returns all of the extra info, for code that reads asyncio's attribute.
PyObject* transport_get_extra(PyObject* self, void*);

// ---- stream.cc
int call_transport(Transport* transport, std::uint32_t events);
// Sends the gathered data of all transports.
void flush_written(Core* core);
// Sends the gathered data of one transport, if any.
void settle(Transport* transport);
void clear_queue(Transport* transport);
void pause_protocol_if_full(Transport* transport);
PyObject* transport_write(PyObject* self, PyObject* data);
PyObject* transport_writelines(PyObject* self, PyObject* pieces);
PyObject* transport_write_eof(PyObject* self, PyObject*);
PyObject* transport_get_write_buffer_size(PyObject* self, PyObject*);
PyObject* transport_get_write_buffer_limits(PyObject* self, PyObject*);
PyObject* transport_set_write_buffer_limits(PyObject* self, PyObject* arguments,
                                            PyObject* keywords);
PyObject* transport_make_empty_waiter(PyObject* self, PyObject*);
PyObject* transport_reset_empty_waiter(PyObject* self, PyObject*);

}  // namespace pyspate
