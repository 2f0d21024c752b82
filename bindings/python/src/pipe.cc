// Reading and writing of pipes.
#include <unistd.h>

#include <cerrno>

#include "engine.h"
#include "piece_queue.h"

namespace pyspate {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

// ---- reading

PyObject* pipe_read_ready(PyObject* self, PyObject*) {
  Engine* const engine = engine_of(self);
  const State& state = *engine->state;
  Core* const core = usual_core(engine);
  const int fd = descriptor_of(engine);
  const ssize_t size =
      core == nullptr || fd < 0 ? 0 : ::read(fd, core->read_buffer, kReadBuffer);
  // Asyncio's method reads the end again.
  if (size == 0) return PyObject_CallOneArg(state.lookups.pipe_read_ready, self);
  if (size < 0) {
    if (would_block(errno)) Py_RETURN_NONE;
    raise_errno(errno);
    return fail_fatally(self, "Fatal read error on pipe transport");
  }
  const Ref data(PyBytes_FromStringAndSize(core->read_buffer, size));
  const Ref protocol = Ref::copy(engine->protocol);
  if (!data) return nullptr;
  const Ref done(PyObject_CallMethodOneArg(protocol.get(), state.names.data_received, data.get()));
  return done ? Py_NewRef(Py_None) : nullptr;
}

// ---- writing

// Returns null, without an exception, if it is not set yet or is another object.
PieceQueue* queue_of(Engine* engine) {
  PyObject* const buffer = engine->buffer;
  const bool is_ours = buffer != nullptr && Py_TYPE(buffer) == engine->state->piece_queue_type;
  return is_ours ? piece_queue_of(buffer) : nullptr;
}

bool may_write_natively(Engine* engine, PyObject* data) {
  return usual_core(engine) != nullptr && descriptor_of(engine) >= 0 && engine->lost == 0 &&
         !engine->is_closing && queue_of(engine) != nullptr &&
         (PyBytes_Check(data) || PyByteArray_Check(data) || PyMemoryView_Check(data));
}

// Returns how much of the data the kernel took; -1 is an error, without an exception.
ssize_t write_now(Engine* engine, const Py_buffer& data) {
  if (data.len == 0) return 0;
  const ssize_t size =
      ::write(descriptor_of(engine), data.buf, static_cast<std::size_t>(data.len));
  return size < 0 && would_block(errno) ? 0 : size;
}

bool call_method(PyObject* self, PyObject* name) {
  return static_cast<bool>(Ref(PyObject_CallMethodNoArgs(self, name)));
}

// Ends the transport because of the current exception.
PyObject* fail_write(PyObject* self) {
  ++engine_of(self)->lost;
  return fail_fatally(self, "Fatal write error on pipe transport");
}

bool add_writer(PyObject* self) {
  Engine* const engine = engine_of(self);
  const Ref method(PyObject_GetAttr(self, engine->state->names.write_ready));
  if (!method) return false;
  PyObject* const call[] = {engine->descriptor, method.get()};
  return static_cast<bool>(Ref(core_add_writer(engine->loop, call, 2, nullptr)));
}

// Keeps the data except for its first `sent` bytes until the pipe is writable.
PyObject* write_later(PyObject* self, PyObject* data, std::size_t sent) {
  Engine* const engine = engine_of(self);
  PieceQueue* const queue = queue_of(engine);
  if (queue->size == 0 && !add_writer(self)) return nullptr;
  if (!append(queue, data, sent)) return nullptr;
  return PyObject_CallMethodNoArgs(self, engine->state->names.maybe_pause_protocol);
}

PyObject* pipe_write(PyObject* self, PyObject* data) {
  Engine* const engine = engine_of(self);
  if (!may_write_natively(engine, data)) {
    return PyObject_CallFunctionObjArgs(engine->state->lookups.pipe_write, self, data, nullptr);
  }
  Py_buffer view;
  const Ref kept = Ref::copy(self);
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return fail_write(self);
  const ssize_t size = queue_of(engine)->size == 0 ? write_now(engine, view) : 0;
  const int error = errno;
  const bool is_all = size == view.len;
  PyBuffer_Release(&view);
  if (is_all) Py_RETURN_NONE;
  if (size >= 0) return write_later(self, data, static_cast<std::size_t>(size));
  raise_errno(error);
  return fail_write(self);
}

// Writes what the pipe takes. Returns an errno, or 0.
int write_queue(Engine* engine, PieceQueue* queue) {
  while (queue->size > 0) {
    Vector vector;
    fill(vector, queue->pieces);
    const ssize_t size = ::writev(descriptor_of(engine), vector.parts, vector.count);
    if (size < 0) return would_block(errno) ? 0 : errno;
    drop_front(queue, static_cast<std::size_t>(size));
    if (static_cast<std::size_t>(size) < vector.size) break;
  }
  return 0;
}

bool remove_writer(Engine* engine) {
  return static_cast<bool>(Ref(core_remove_writer(engine->loop, engine->descriptor)));
}

// After the queue has become empty.
bool finish_writing(PyObject* self) {
  Engine* const engine = engine_of(self);
  const Names& names = engine->state->names;
  if (!remove_writer(engine) || !call_method(self, names.maybe_resume_protocol)) return false;
  if (!engine->is_closing || loop_of(engine) == nullptr) return true;
  const Ref removed(core_remove_reader(engine->loop, engine->descriptor));
  return removed &&
         Ref(PyObject_CallMethodOneArg(self, names.call_connection_lost, Py_None));
}

PyObject* pipe_write_ready(PyObject* self, PyObject*) {
  Engine* const engine = engine_of(self);
  PieceQueue* const queue = queue_of(engine);
  if (queue == nullptr || loop_of(engine) == nullptr || descriptor_of(engine) < 0) {
    return PyObject_CallOneArg(engine->state->lookups.pipe_write_ready, self);
  }
  const Ref kept = Ref::copy(self);
  if (const int error = write_queue(engine, queue)) {
    drop_all(queue);
    if (!remove_writer(engine)) return nullptr;
    raise_errno(error);
    return fail_write(self);
  }
  return queue->size > 0 || finish_writing(self) ? Py_NewRef(Py_None) : nullptr;
}

// ---- the types

PyMethodDef read_methods[] = {{"_read_ready", pipe_read_ready, METH_NOARGS, nullptr}, {}};
PyMethodDef write_methods[] = {
    {"write", pipe_write, METH_O, nullptr},
    {"_write_ready", pipe_write_ready, METH_NOARGS, nullptr},
    {}};
const PyMemberDef kReadMembers[] = {
    {"_loop", T_OBJECT, offsetof(Engine, loop), 0, nullptr},
    {"_protocol", T_OBJECT, offsetof(Engine, protocol), 0, nullptr},
    {"_pipe", T_OBJECT, offsetof(Engine, file), 0, nullptr},
    {"_fileno", T_OBJECT, offsetof(Engine, descriptor), 0, nullptr},
    {}};
const PyMemberDef kWriteMembers[] = {
    {"_loop", T_OBJECT, offsetof(Engine, loop), 0, nullptr},
    {"_protocol", T_OBJECT, offsetof(Engine, protocol), 0, nullptr},
    {"_pipe", T_OBJECT, offsetof(Engine, file), 0, nullptr},
    {"_fileno", T_OBJECT, offsetof(Engine, descriptor), 0, nullptr},
    {"_buffer", T_OBJECT, offsetof(Engine, buffer), 0, nullptr},
    {"_conn_lost", T_INT, offsetof(Engine, lost), 0, nullptr},
    {"_closing", T_BOOL, offsetof(Engine, is_closing), 0, nullptr},
    {}};

}  // namespace

PyTypeObject* make_read_pipe_engine_type(PyObject* module) {
  return derive_engine(module, "spate._core.ReadPipeEngine", "BaseTransport", read_methods,
                       kReadMembers);
}

PyTypeObject* make_write_pipe_engine_type(PyObject* module) {
  return derive_engine(module, "spate._core.WritePipeEngine", "_FlowControlMixin", write_methods,
                       kWriteMembers);
}

}  // namespace pyspate
