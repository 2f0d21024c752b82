// Data that waits for the kernel.
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "queue.h"

namespace pyspate {

// Bytes objects are sent in place; everything else is copied.
struct Piece {
  PyObject* bytes;
  std::size_t sent;

  const char* rest() const { return PyBytes_AS_STRING(bytes) + sent; }
  std::size_t size() const { return static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)) - sent; }
};

inline constexpr int kPieces = 64;

// Up to kPieces pieces for a system call.
struct Vector {
  iovec parts[kPieces];
  int count;
  std::size_t size;  // Their sum in bytes.
};

inline void fill(Vector& vector, Ring<Piece>& queue) {
  vector.count = static_cast<int>(queue.size() < kPieces ? queue.size() : kPieces);
  vector.size = 0;
  for (int i = 0; i < vector.count; ++i) {
    const Piece& piece = queue[static_cast<std::size_t>(i)];
    vector.parts[i] = {const_cast<char*>(piece.rest()), piece.size()};
    vector.size += piece.size();
  }
}

// Removes that many bytes from the front.
inline void drop_front(Ring<Piece>& queue, std::size_t size) {
  while (size > 0) {
    Piece& piece = queue.front();
    const std::size_t left = piece.size();
    if (size < left) {
      piece.sent += size;
      return;
    }
    size -= left;
    Py_DECREF(queue.pop().bytes);
  }
}

inline void drop_all(Ring<Piece>& queue) {
  while (queue.size() > 0) Py_DECREF(queue.pop().bytes);
}

// Returns the data of an object that has the buffer interface.
inline Ref copy_bytes(PyObject* data) {
  return PyBytes_CheckExact(data) ? Ref::copy(data) : Ref(PyBytes_FromObject(data));
}

}  // namespace pyspate
