// The buffer of a write pipe: asyncio's code uses it like its own bytearray.
#pragma once

#include "pieces.h"

namespace pyspate {

struct PieceQueue {
  PyObject_HEAD Ring<Piece> pieces;
  std::size_t size;
};

inline PieceQueue* piece_queue_of(PyObject* self) { return reinterpret_cast<PieceQueue*>(self); }
// Appends the data except for its first `sent` bytes.
bool append(PieceQueue* queue, PyObject* data, std::size_t sent);
void drop_front(PieceQueue* queue, std::size_t size);
void drop_all(PieceQueue* queue);

}  // namespace pyspate
