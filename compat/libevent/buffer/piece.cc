// Semantics: event2/buffer.h (evbuffer_add_reference, evbuffer_add_buffer_reference); probed: when
// the program's memory is released, and that a buffer with views cannot be referenced again.
#include "compat/libevent/buffer/piece.h"

#include <bit>
#include <cstdint>
#include <new>

#include "compat/libevent/buffer/file_segment.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

constexpr std::size_t kBlockLeast = 256;
constexpr std::size_t kBlockMost = 16 * 1024;  // Up to this size a block is a power of two.
constexpr std::size_t kRoomMost = PTRDIFF_MAX - kBlockMost;

template <class T, class... Arguments>
Piece* make(Arguments&&... arguments) {
  void* memory = allocate(sizeof(T));
  return memory != nullptr ? new (memory) T(arguments...) : nullptr;
}

// Frees the piece before the objects that it holds, because a cleanup function may do anything
// except use it.
void destroy(Piece* piece) {
  switch (piece->kind) {
    case PieceKind::own:
      return release(piece);
    case PieceKind::reference: {
      const ReferencePiece lent = {static_cast<ReferencePiece*>(piece)->start,
                                   static_cast<ReferencePiece*>(piece)->length,
                                   static_cast<ReferencePiece*>(piece)->cleanup,
                                   static_cast<ReferencePiece*>(piece)->argument};
      release(piece);
      if (lent.cleanup != nullptr) lent.cleanup(lent.start, lent.length, lent.argument);
      return;
    }
    case PieceKind::view: {
      Piece* shown = static_cast<ViewPiece*>(piece)->of;
      release(piece);
      return release_piece(shown);
    }
    case PieceKind::file: {
      evbuffer_file_segment* segment = static_cast<FilePiece*>(piece)->segment;
      release(piece);
      return segment->give_up();
    }
  }
}

}  // namespace

FilePiece::FilePiece(evbuffer_file_segment& of, off_t place, std::size_t count)
    : Piece(PieceKind::file, of.contents() != nullptr ? of.contents() + place : nullptr, count),
      segment(&of),
      offset(place) {
  of.take();
}

OwnPiece* make_own_piece(std::size_t at_least) {
  if (at_least > kRoomMost) return nullptr;
  std::size_t block = at_least + sizeof(OwnPiece);
  if (block < kBlockLeast) block = kBlockLeast;
  if (block < kBlockMost) block = std::bit_ceil(block);
  void* memory = allocate(block);
  return memory != nullptr ? new (memory) OwnPiece(block - sizeof(OwnPiece)) : nullptr;
}

Piece* make_reference_piece(const void* bytes, std::size_t count, evbuffer_ref_cleanup_cb cleanup,
                            void* argument) {
  return make<ReferencePiece>(bytes, count, cleanup, argument);
}
Piece* make_view_piece(Piece& shown) { return make<ViewPiece>(shown); }
Piece* make_file_piece(evbuffer_file_segment& segment, off_t offset, std::size_t count) {
  return make<FilePiece>(segment, offset, count);
}

void release_piece(Piece* piece) {
  if (piece->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(piece);
}

void release_pieces(Piece* first) {
  while (first != nullptr) {
    Piece* next = first->next;
    release_piece(first);
    first = next;
  }
}

void shorten(Piece& piece, std::size_t count) {
  piece.size -= count;
  if (piece.data != nullptr) piece.data += count;
  if (piece.kind == PieceKind::file) {
    static_cast<FilePiece&>(piece).offset += static_cast<off_t>(count);
  }
}

}  // namespace spate::libevent
