#include "piece_queue.h"

#include "state.h"

namespace pyspate {
namespace {

PyObject* queue_clear(PyObject* self, PyObject*) {
  drop_all(piece_queue_of(self));
  Py_RETURN_NONE;
}

Py_ssize_t queue_length(PyObject* self) {
  return static_cast<Py_ssize_t>(piece_queue_of(self)->size);
}

PyObject* queue_extend(PyObject* self, PyObject* data) {
  return append(piece_queue_of(self), data, 0) ? Py_NewRef(self) : nullptr;
}

void queue_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  drop_all(piece_queue_of(self));
  piece_queue_of(self)->pieces.free();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"clear", queue_clear, METH_NOARGS, nullptr}, {}};
PyType_Slot slots[] = {{Py_tp_dealloc, as_slot(queue_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_sq_length, as_slot(queue_length)},
                       {Py_sq_inplace_concat, as_slot(queue_extend)},
                       {}};
PyType_Spec spec = {"spate._core.PieceQueue", sizeof(PieceQueue), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

bool append(PieceQueue* queue, PyObject* data, std::size_t sent) {
  Ref bytes = copy_bytes(data);
  if (!bytes) return false;
  const Piece piece{bytes.get(), sent};
  if (piece.size() == 0) return true;
  if (!queue->pieces.push(piece)) return false;
  queue->size += piece.size();
  bytes.release();
  return true;
}

void drop_front(PieceQueue* queue, std::size_t size) {
  queue->size -= size;
  drop_front(queue->pieces, size);
}

void drop_all(PieceQueue* queue) {
  queue->size = 0;
  drop_all(queue->pieces);
}

PyTypeObject* make_piece_queue_type(PyObject* module) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace pyspate
