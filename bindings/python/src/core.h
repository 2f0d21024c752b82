// The native half of a loop: its queue, timers, descriptors and turns.
#pragma once

#include <spate.h>

#include "address.h"
#include "handle.h"
#include "python.h"
#include "queue.h"
#include "state.h"

namespace pyspate {

struct Transport;

struct Timed {
  double when;
  std::uint64_t sequence;  // Orders timers of the same time by their creation.
  Handle* handle;          // A strong reference, like all handles below.

  bool is_before(const Timed& other) const {
    return when < other.when || (when == other.when && sequence < other.sequence);
  }
};

// The callbacks of one descriptor. Never freed before the loop, since descriptors are reused.
struct Watch {
  spate_io io;
  int fd;
  Handle* reader;
  Handle* writer;
  PyObject* file;  // The object passed, if not a number.
};

// The lowest bit of a spate_io's data: set if the address is that of a Transport instead of a
// Watch.
inline constexpr std::uintptr_t kIsTransport = 1;

inline constexpr int kBatch = 64;
inline constexpr std::size_t kReadBuffer = 256 * 1024;

// Times are in seconds.
struct Metrics {
  std::uint64_t turns, callbacks, waits;
  double running;       // In runs that have ended.
  double waiting;       // In waits for the kernel, which are parts of runs.
  double longest_turn;  // Between two looks at the kernel.
};

struct Core {
  PyObject_HEAD State* state;
  spate_loop* loop;  // Null after the loop was closed.
  Ring<Handle*> ready;
  Array<Timed> timers;  // A heap of arity four.
  Array<Handle*> expired;
  Array<Watch*> watches;         // By descriptor.
  Array<Transport*> written;     // With gathered data to send. Strong references.
  Array<Transport*> transports;  // By descriptor. They remove themselves.
  Transport* held;               // The transports that the loop keeps alive.
  char* read_buffer;             // kReadBuffer bytes.
  AddressCache addresses;
  PyThreadState* waiting;        // Set by before_wait().
  PyObject* task_factory;        // Or null.
  std::uint64_t sequence;
  std::size_t cancelled_timers;
  std::uint64_t forks;  // State::forks as of the last turn.
  double looked;        // The time of the last poll,
  unsigned skipped;     // and the number of turns since.
  Metrics metrics;
  double began;             // The time when the current run began; 0: it does not run.
  PyObject* slow_function;  // Or null.
  double slow_seconds;
  bool is_stopping, is_closed, is_debug;
  bool has_own_clock;  // A subclass overrides time(),
  bool is_patched;     // or the object does.
  bool may_block, is_asleep, is_calling;
};

inline PyObject* as_object(Core* core) { return reinterpret_cast<PyObject*>(core); }
inline Core* core_of(PyObject* self) { return reinterpret_cast<Core*>(self); }

// ---- core.cc
bool check_open(Core* core);
// Passes the current exception to the loop's exception handler. Without a message, a handle's
// message is used. Any object may be null. Returns 0, or -1 with an exception that ends the run.
int report(Core* core, const char* message, PyObject* handle, PyObject* transport);
bool parse_context(PyObject* const* arguments, Py_ssize_t size, PyObject* names,
                   PyObject** context);
PyObject* core_create_future(PyObject* self, PyObject*);
// Handles a fork in the child process.
bool notice_fork(Core* core);
void drop_everything(Core* core);

// ---- timers.cc
double now();
// Returns the loop's time, from time() if that is overridden. -1 means an error if an exception is
// set.
double time_of(Core* core);
void note_cancelled_timer(Core* core);
void drop_cancelled_timers(Core* core);
bool take_expired(Core* core);
PyObject* core_time(PyObject* self, PyObject*);
PyObject* core_call_later(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names);
PyObject* core_call_at(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                       PyObject* names);

// ---- watches.cc
// Returns the descriptor of a number or of an object with fileno(); -1 is an error.
int descriptor_of(PyObject* file);
// Raises RuntimeError if a transport uses the descriptor.
PyObject* core_check_no_transport(PyObject* self, PyObject* file);
bool check_debug(Core* core, PyObject* callback, const char* method, bool of_thread);
PyObject* core_add_reader(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names);
PyObject* core_add_writer(PyObject* self, PyObject* const* arguments, Py_ssize_t size,
                          PyObject* names);
PyObject* core_remove_reader(PyObject* self, PyObject* file);
PyObject* core_remove_writer(PyObject* self, PyObject* file);

// ---- socket_call.cc
// Each returns a pair: False and the result, or True and a future of it.
PyObject* core_socket_receive(PyObject* self, PyObject* arguments);
PyObject* core_socket_receive_into(PyObject* self, PyObject* arguments);
PyObject* core_socket_send(PyObject* self, PyObject* arguments);
// _socket_connect(socket, address): returns None if asyncio has to resolve the address.
PyObject* core_socket_connect(PyObject* self, PyObject* arguments);
// _connect(host, port): opens a connection to an address. Returns a SocketCall that owns it, with a
// future if it is not open yet. Returns None if the host is a name.
PyObject* core_connect(PyObject* self, PyObject* arguments);
// _make_connected_transport(call, protocol, waiter): the transport takes the open connection.
PyObject* core_make_connected_transport(PyObject* self, PyObject* arguments);

// ---- accept.cc
PyObject* core_accept(PyObject* self, PyObject* arguments);

// ---- metrics.cc
// Calls the function of set_slow_callback() if the callback that began then was slow. `source` is
// its handle or transport. Keeps the current exception.
void note_duration(Core* core, PyObject* source, double began);
PyObject* core_metrics(PyObject* self, PyObject*);
PyObject* core_set_slow_callback(PyObject* self, PyObject* arguments);

// ---- turn.cc
void before_wait(spate_loop* loop, void* data);
void after_wait(spate_loop* loop, void* data);
PyObject* core_run_once(PyObject* self, PyObject*);

}  // namespace pyspate
