// The module's state per interpreter: types, and objects of asyncio.
#pragma once

#include "openssl.h"
#include "python.h"

#include <cstdint>

namespace pyspate {

struct Handle;

// Python objects that are looked up once. All are strong references.
struct Lookups {
  PyObject* asyncio_handle;
  PyObject* asyncio_timer;
  PyObject* buffered_protocol;
  PyObject* socket;         // socket.socket
  PyObject* socket_view;    // asyncio.trsock.TransportSocket
  PyObject* sendfile_mode;  // constants._SendfileMode.TRY_NATIVE
  PyObject* task;
  PyObject* future;
  PyObject* create_task;         // BaseEventLoop.create_task(), for the rare cases
  PyObject* finish_waiter;       // futures._set_result_unless_cancelled()
  PyObject* tls_established;     // SSLProtocolState.WRAPPED
  PyObject* tls_buffer_updated;  // SSLProtocol.buffer_updated()
  // Methods of asyncio's transports, for the rare cases:
  PyObject* datagram_read_ready;
  PyObject* datagram_sendto;
  PyObject* pipe_read_ready;
  PyObject* pipe_write;
  PyObject* pipe_write_ready;
  PyObject* core_time;           // Core.time, to detect a subclass that overrides it
  // From spate.support:
  PyObject* describe_handle;
  PyObject* describe_transport;
  PyObject* capture_stack;
  PyObject* report;
  PyObject* run_in_debug_mode;
  PyObject* warn_of_lost_write;
};

// Interned strings.
struct Names {
  PyObject* context;
  PyObject* loop;
  PyObject* name;
  PyObject* time;
  PyObject* thread_id;
  PyObject* getsockname;
  PyObject* getpeername;
  PyObject* peername;
  PyObject* sockname;
  PyObject* socket;
  PyObject* close;
  PyObject* setblocking;
  PyObject* start;
  PyObject* attach;
  PyObject* detach;
  PyObject* connection_made;
  PyObject* connection_lost;
  PyObject* data_received;
  PyObject* datagram_received;
  PyObject* error_received;
  PyObject* get_buffer;
  PyObject* buffer_updated;
  PyObject* eof_received;
  PyObject* pause_writing;
  PyObject* resume_writing;
  PyObject* set_result;
  PyObject* set_exception;
  PyObject* done;
  PyObject* add_done_callback;
  PyObject* write;
  PyObject* write_ready;
  PyObject* maybe_pause_protocol;
  PyObject* maybe_resume_protocol;
  PyObject* call_connection_lost;
  PyObject* write_appdata;
  PyObject* do_read;
  PyObject* do_write;
  PyObject* process_outgoing;
  PyObject* control_ssl_reading;
};

// Reference-counted: a loop may outlive the module when an interpreter ends.
struct State {
  std::size_t owners;
  PyTypeObject* handle_type;
  PyTypeObject* core_type;
  PyTypeObject* transport_type;
  PyTypeObject* socket_call_type;
  PyTypeObject* tls_engine_type;
  PyTypeObject* datagram_engine_type;
  PyTypeObject* read_pipe_engine_type;
  PyTypeObject* write_pipe_engine_type;
  PyTypeObject* piece_queue_type;
  OpenSsl openssl;
  Lookups lookups;
  Names names;
  PyObject* loop_keyword;  // ("loop",)
  PyObject* task_keywords;  // ("loop", "name")
  PyObject* minus_one;
  std::uint64_t forks;  // The number of forks between the first process and this one.

  static constexpr int kFreeHandles = 256;
  Handle* free_handles[kFreeHandles];
  int free_count;
};

// Returns the state of the module that defines `type` or a base of it.
State* state_of_type(PyTypeObject* type);
void release(State* state);

PyTypeObject* make_handle_type(PyObject* module);
PyTypeObject* make_core_type(PyObject* module);
PyTypeObject* make_transport_type(PyObject* module);
PyTypeObject* make_socket_call_type(PyObject* module);
PyTypeObject* make_tls_engine_type(PyObject* module);
PyTypeObject* make_datagram_engine_type(PyObject* module);
PyTypeObject* make_read_pipe_engine_type(PyObject* module);
PyTypeObject* make_write_pipe_engine_type(PyObject* module);
PyTypeObject* make_piece_queue_type(PyObject* module);

}  // namespace pyspate
