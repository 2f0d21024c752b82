// Piece: contiguous bytes of one evbuffer, with the memory that they are in.
//
// spate::Buffer is not used below evbuffers: a program may reserve two extents and commit them
// later, gets a callback for each piece of memory that it lent (with its address, size and
// argument), and puts parts of files between the bytes. None of this fits into Buffer without
// making it worse.
//
// A piece is in one evbuffer. Other evbuffers may have views of it: it then stays, unchanged, until
// the last of them is freed, on any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>

#include "compat/libevent/buffer_api.h"

namespace spate::libevent {

enum class PieceKind : unsigned char { own, reference, view, file };

struct Piece {
  Piece(PieceKind of_kind, unsigned char* bytes, std::size_t count)
      : data(bytes), size(count), kind(of_kind) {}

  // Returns true if views refer to its memory.
  bool is_shown() const { return owners.load(std::memory_order_acquire) != 1; }

  Piece* next = nullptr;
  unsigned char* data;  // Null: of a file that is not loaded.
  std::size_t size;
  std::atomic<int> owners{1};
  PieceKind kind;
};

// Memory of the library, which follows the struct.
struct OwnPiece : Piece {
  explicit OwnPiece(std::size_t room) : Piece(PieceKind::own, nullptr, 0), end(memory() + room) {
    data = memory();
  }

  unsigned char* memory() { return reinterpret_cast<unsigned char*>(this + 1); }
  std::size_t capacity() { return static_cast<std::size_t>(end - memory()); }
  std::size_t room_behind() const { return static_cast<std::size_t>(end - data) - size; }
  std::size_t room_before() { return static_cast<std::size_t>(data - memory()); }

  unsigned char* end;
};

// Memory of the program.
struct ReferencePiece : Piece {
  ReferencePiece(const void* bytes, std::size_t count, evbuffer_ref_cleanup_cb on_end,
                 void* its_argument)
      : Piece(PieceKind::reference,
              const_cast<unsigned char*>(static_cast<const unsigned char*>(bytes)), count),
        start(bytes),
        length(count),
        cleanup(on_end),
        argument(its_argument) {}

  const void* start;
  std::size_t length;
  evbuffer_ref_cleanup_cb cleanup;
  void* argument;
};

// A view of another buffer's piece, as it was when the view was made.
struct ViewPiece : Piece {
  explicit ViewPiece(Piece& shown) : Piece(PieceKind::view, shown.data, shown.size), of(&shown) {
    shown.owners.fetch_add(1, std::memory_order_relaxed);
  }

  Piece* of;
};

struct FilePiece : Piece {
  FilePiece(evbuffer_file_segment& of, off_t place, std::size_t count);

  evbuffer_file_segment* segment;
  off_t offset;  // The offset of its first byte, within the segment.
};

// Returns the piece to append to; null if it has no private room.
inline OwnPiece* writable(Piece* piece) {
  const bool is_writable = piece != nullptr && piece->kind == PieceKind::own && !piece->is_shown();
  return is_writable ? static_cast<OwnPiece*>(piece) : nullptr;
}

inline bool is_unmapped(const Piece& piece) { return piece.data == nullptr && piece.size != 0; }

// Returns null when memory runs out. The room is `at_least` or slightly more.
OwnPiece* make_own_piece(std::size_t at_least);
Piece* make_reference_piece(const void* bytes, std::size_t count, evbuffer_ref_cleanup_cb cleanup,
                            void* argument);
Piece* make_view_piece(Piece& shown);
Piece* make_file_piece(evbuffer_file_segment& segment, off_t offset, std::size_t count);

// Releases one owner's piece. The last one frees it, and calls the program's cleanup function for
// lent memory.
void release_piece(Piece* piece);
void release_pieces(Piece* first);

// Removes `count` of its bytes from the front.
void shorten(Piece& piece, std::size_t count);

}  // namespace spate::libevent
