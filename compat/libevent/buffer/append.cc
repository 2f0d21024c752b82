// Adding to a buffer, at either end.
//
// Semantics: event2/buffer.h; probed: a call without effect succeeds on a frozen buffer; which of
// two buffers calls back first.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/buffer/file_segment.h"

using namespace spate::libevent;

namespace {

constexpr std::size_t kPieceMost = 4096;  // The largest piece for small additions.

// In a buffer with many small additions, each piece is twice as large as the last.
std::size_t piece_size(Piece* last, std::size_t needed) {
  std::size_t wanted = 0;
  if (last != nullptr && last->kind == PieceKind::own) {
    wanted = static_cast<OwnPiece*>(last)->capacity() * 2;
  }
  if (wanted > kPieceMost) wanted = kPieceMost;
  return std::max(needed, wanted);
}

unsigned char* end_of(const Piece& piece) { return piece.data + piece.size; }

}  // namespace

// ---- room

std::size_t evbuffer::room_in_last() const {
  const OwnPiece* piece = writable(in_->last);
  return piece != nullptr ? piece->room_behind() : 0;
}

bool evbuffer::make_room(std::size_t at_least) {
  const std::size_t room = room_in_last();
  return at_least <= room || make_spare(at_least - room);
}

bool evbuffer::make_spare(std::size_t at_least) {
  if (!hold()) return false;
  if (in_->spare != nullptr && in_->spare->capacity() >= at_least) return true;
  OwnPiece* larger = make_own_piece(piece_size(in_->last, at_least));
  if (larger == nullptr) return false;
  if (in_->spare != nullptr) release_piece(in_->spare);
  in_->spare = larger;
  return true;
}

int evbuffer::extents(iovec* extents, int count) const {
  int used = 0;
  if (const std::size_t room = room_in_last(); room != 0 && used < count) {
    extents[used++] = {end_of(*in_->last), room};
  }
  if (in_->spare != nullptr && used < count)
    extents[used++] = {in_->spare->data, in_->spare->capacity()};
  return used;
}

iovec evbuffer::contiguous_room(std::size_t at_least) {
  const std::size_t room = room_in_last();
  if (room != 0 && room >= at_least) return {end_of(*in_->last), room};
  if (!make_spare(at_least)) return {nullptr, 0};
  return {in_->spare->data, in_->spare->capacity()};
}

void evbuffer::commit(std::size_t in_last, std::size_t in_spare) {
  if (in_last != 0) {
    in_->last->size += in_last;
    in_->size += in_last;
    in_->added += in_last;
  }
  if (in_spare == 0) return;
  OwnPiece* piece = in_->spare;
  in_->spare = nullptr;
  piece->size = in_spare;
  link_last(piece);
}

void evbuffer::commit_in(const iovec& room, std::size_t count) {
  const bool is_spare = in_->spare != nullptr && room.iov_base == in_->spare->data;
  commit(is_spare ? 0 : count, is_spare ? count : 0);
}

// ---- the back

bool evbuffer::append(const void* bytes, std::size_t count) {
  if (!can_grow_by(count) || !make_room(count)) return false;
  const std::size_t room = room_in_last();
  const std::size_t in_last = std::min(count, room);
  if (in_last != 0) std::memcpy(end_of(*in_->last), bytes, in_last);
  const std::size_t rest = count - in_last;
  if (rest != 0) {
    std::memcpy(in_->spare->data, static_cast<const unsigned char*>(bytes) + in_last, rest);
  }
  commit(in_last, rest);
  return true;
}

void evbuffer::link_last(Piece* piece) {
  piece->next = nullptr;
  (in_->last != nullptr ? in_->last->next : in_->first) = piece;
  in_->last = piece;
  in_->size += piece->size;
  in_->added += piece->size;
  in_->may_have_unmapped = in_->may_have_unmapped || is_unmapped(*piece);
}

void evbuffer::append_all(evbuffer& other) {
  (in_->last != nullptr ? in_->last->next : in_->first) = other.in_->first;
  in_->last = other.in_->last;
  take_all(other);
}

// Counts the pieces of `other` as this buffer's; they are linked here already.
void evbuffer::take_all(evbuffer& other) {
  in_->size += other.in_->size;
  in_->added += other.in_->size;
  in_->may_have_unmapped = in_->may_have_unmapped || other.in_->may_have_unmapped;
  other.in_->first = other.in_->last = nullptr;
  other.in_->deleted += other.in_->size;
  other.in_->size = 0;
  other.in_->may_have_unmapped = false;
}

// Instead, the two may swap their contents, if this buffer has none, and the other has no callbacks
// except its owner's.
bool evbuffer::take_contents(evbuffer& other) {
  const Contents& theirs = *other.in_;
  if (in_ != nothing() || other.is_alone() || theirs.spare != nullptr || theirs.lock != nullptr ||
      theirs.callbacks != nullptr || theirs.deferred != nullptr) {
    return false;
  }
  std::swap(in_, other.in_);
  in_->added = in_->size;
  if (other.has_owner_) notify_owner(*other.owner(), other, {in_->size, 0, in_->size});
  return true;
}

// ---- the front

void evbuffer::link_first(Piece* piece) {
  piece->next = in_->first;
  in_->first = piece;
  if (in_->last == nullptr) in_->last = piece;
  in_->size += piece->size;
  in_->added += piece->size;
}

void evbuffer::prepend_all(evbuffer& other) {
  other.in_->last->next = in_->first;
  in_->first = other.in_->first;
  if (in_->last == nullptr) in_->last = other.in_->last;
  take_all(other);
}

// A new piece is filled from its end, so that there is room for later prepends.
bool evbuffer::prepend(const void* bytes, std::size_t count) {
  if (!can_grow_by(count)) return false;
  OwnPiece* front = writable(in_->first);
  const std::size_t room = front != nullptr ? front->room_before() : 0;
  const std::size_t in_first = std::min(count, room);
  const std::size_t rest = count - in_first;
  OwnPiece* piece = rest != 0 ? make_own_piece(rest) : nullptr;
  if (rest != 0 && piece == nullptr) return false;
  if (in_first != 0) {
    front->data -= in_first;
    front->size += in_first;
    std::memcpy(front->data, static_cast<const unsigned char*>(bytes) + rest, in_first);
    in_->size += in_first;
    in_->added += in_first;
  }
  if (piece != nullptr) {
    piece->data = piece->end - rest;
    piece->size = rest;
    std::memcpy(piece->data, bytes, rest);
    link_first(piece);
  }
  return true;
}

// ---- the exported functions: bytes

int evbuffer_add(evbuffer* buffer, const void* bytes, size_t count) {
  const Use use(buffer);
  if (buffer->is_back_frozen() || !buffer->append(bytes, count)) return -1;
  buffer->changed();
  return 0;
}

int evbuffer_prepend(evbuffer* buffer, const void* bytes, size_t count) {
  const Use use(buffer);
  if (count == 0) return 0;
  if (buffer->is_front_frozen() || !buffer->prepend(bytes, count)) return -1;
  buffer->changed();
  return 0;
}

// Each extent is a separate change.
size_t evbuffer_add_iovec(evbuffer* buffer, evbuffer_iovec* extents, int count) {
  const Use use(buffer);
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) total += extents[i].iov_len;
  if (count <= 0 || !buffer->can_grow_by(total) || !buffer->make_room(total)) return 0;
  std::size_t done = 0;
  for (int i = 0; i < count; ++i) {
    if (evbuffer_add(buffer, extents[i].iov_base, extents[i].iov_len) != 0) break;
    done += extents[i].iov_len;
  }
  return done;
}

int evbuffer_add_vprintf(evbuffer* buffer, const char* format, va_list arguments) {
  constexpr std::size_t kGuess = 64;
  const Use use(buffer);
  if (buffer->is_back_frozen()) return -1;
  std::va_list again;
  va_copy(again, arguments);
  iovec room = buffer->contiguous_room(kGuess);
  int length = std::vsnprintf(static_cast<char*>(room.iov_base), room.iov_len, format, arguments);
  if (length >= 0 && static_cast<std::size_t>(length) >= room.iov_len) {
    room = buffer->contiguous_room(static_cast<std::size_t>(length) + 1);
    length = std::vsnprintf(static_cast<char*>(room.iov_base), room.iov_len, format, again);
  }
  va_end(again);
  const auto size = static_cast<std::size_t>(length);
  if (length < 0 || room.iov_len <= size || !buffer->can_grow_by(size)) return -1;
  buffer->commit_in(room, size);
  buffer->changed();
  return length;
}

int evbuffer_add_printf(evbuffer* buffer, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = evbuffer_add_vprintf(buffer, format, arguments);
  va_end(arguments);
  return length;
}

// ---- memory and files of the program's

int evbuffer_add_reference(evbuffer* buffer, const void* bytes, size_t count,
                           evbuffer_ref_cleanup_cb cleanup, void* argument) {
  const Use use(buffer);
  if (buffer->is_back_frozen() || !buffer->can_grow_by(count)) return -1;
  Piece* piece = make_reference_piece(bytes, count, cleanup, argument);
  if (piece == nullptr) return -1;
  if (count == 0) {
    release_piece(piece);
    return 0;
  }
  buffer->link_last(piece);
  buffer->changed();
  return 0;
}

int evbuffer_add_file_segment(evbuffer* buffer, evbuffer_file_segment* segment, ev_off_t offset,
                              ev_off_t length) {
  const Use use(buffer);
  const off_t most = segment->length() - offset;
  if (offset < 0 || most < 0 || length < -1 || length > most) return -1;
  const auto count = static_cast<std::size_t>(length == -1 ? most : length);
  if (buffer->is_back_frozen() || !buffer->can_grow_by(count)) return -1;
  if (!buffer->drains_to_fd() && !segment->load()) return -1;
  if (count == 0) return 0;
  Piece* piece = make_file_piece(*segment, offset, count);
  if (piece == nullptr) return -1;
  buffer->link_last(piece);
  buffer->changed();
  return 0;
}

// If its range is not available, the descriptor stays open, as in libevent.
int evbuffer_add_file(evbuffer* buffer, int fd, ev_off_t offset, ev_off_t length) {
  if (buffer == nullptr) return -1;  // As in libevent, if the range is invalid.
  unsigned flags = EVBUF_FS_CLOSE_ON_FREE;
  {
    const Use use(buffer);
    if (!buffer->drains_to_fd()) flags |= EVBUF_FS_DISABLE_SENDFILE;
  }
  evbuffer_file_segment* segment = evbuffer_file_segment_new(fd, offset, length, flags);
  if (segment == nullptr) return -1;
  const int result = evbuffer_add_file_segment(buffer, segment, 0, segment->length());
  segment->give_up();
  return result;
}

// ---- whole buffers

namespace {

int move_all(evbuffer* target, evbuffer* source, bool (evbuffer::*is_frozen)() const,
             void (evbuffer::*put)(evbuffer& other)) {
  const UseBoth use(target, source);
  if (source->size() == 0 || source == target) return 0;
  if ((target->*is_frozen)() || source->is_front_frozen()) return -1;
  if (!target->take_contents(*source)) {
    if (!target->can_grow_by(source->size())) return -1;
    (target->*put)(*source);
    source->changed();
  }
  target->changed();
  return 0;
}

}  // namespace

int evbuffer_add_buffer(evbuffer* target, evbuffer* source) {
  return move_all(target, source, &evbuffer::is_back_frozen, &evbuffer::append_all);
}

int evbuffer_prepend_buffer(evbuffer* target, evbuffer* source) {
  return move_all(target, source, &evbuffer::is_front_frozen, &evbuffer::prepend_all);
}

namespace {

// Views and files cannot be referenced again, as in libevent.
bool can_be_shown(const evbuffer& buffer) {
  const Piece* piece = buffer.first();
  while (piece != nullptr &&
         (piece->kind == PieceKind::own || piece->kind == PieceKind::reference)) {
    piece = piece->next;
  }
  return piece == nullptr;
}

// Clones pieces in order; returns null when memory runs out.
Piece* make_views(Piece* first) {
  Piece* views = nullptr;
  Piece** end = &views;
  for (Piece* piece = first; piece != nullptr; piece = piece->next) {
    *end = make_view_piece(*piece);
    if (*end == nullptr) {
      release_pieces(views);
      return nullptr;
    }
    end = &(*end)->next;
  }
  return views;
}

}  // namespace

int evbuffer_add_buffer_reference(evbuffer* target, evbuffer* source) {
  const UseBoth use(target, source);
  if (source->size() == 0) return 0;
  if (target == source) return -1;
  if (target->is_back_frozen() || !target->can_grow_by(source->size())) return -1;
  if (!can_be_shown(*source)) return -1;
  Piece* views = make_views(source->first());
  if (views == nullptr) return -1;
  while (views != nullptr) {
    Piece* next = views->next;
    target->link_last(views);
    views = next;
  }
  target->changed();
  return 0;
}

// ---- room

int evbuffer_expand(evbuffer* buffer, size_t count) {
  const Use use(buffer);
  return buffer->can_grow_by(count) && buffer->make_room(count) ? 0 : -1;
}

int evbuffer_reserve_space(evbuffer* buffer, ev_ssize_t size, evbuffer_iovec* extents, int count) {
  const Use use(buffer);
  const auto wanted = static_cast<std::size_t>(size);
  if (size < 0 || count < 1 || buffer->is_back_frozen() || !buffer->can_grow_by(wanted)) return -1;
  if (count >= 2 && wanted == 0) return 0;
  if (count >= 2 && buffer->room_in_last() < wanted) {
    return buffer->make_room(wanted) ? buffer->extents(extents, count) : -1;
  }
  extents[0] = buffer->contiguous_room(wanted);
  return extents[0].iov_base != nullptr ? 1 : -1;
}

// Fills the extents of the last piece, of the spare one, or of both.
int evbuffer_commit_space(evbuffer* buffer, evbuffer_iovec* extents, int count) {
  const Use use(buffer);
  if (buffer->is_back_frozen()) return -1;
  if (count <= 0) return 0;
  iovec known[2];
  const int known_count = buffer->extents(known, 2);
  const bool begins_in_last =
      buffer->room_in_last() != 0 && known_count > 0 && extents[0].iov_base == known[0].iov_base;
  const int skipped = begins_in_last ? 0 : static_cast<int>(buffer->room_in_last() != 0);
  std::size_t sizes[2] = {0, 0};
  if (count > known_count - skipped) return -1;
  for (int i = 0; i < count; ++i) {
    const iovec& expected = known[skipped + i];
    if (extents[i].iov_base != expected.iov_base || extents[i].iov_len > expected.iov_len)
      return -1;
    sizes[begins_in_last ? i : 1] = extents[i].iov_len;
  }
  if (!buffer->can_grow_by(sizes[0] + sizes[1])) return -1;
  buffer->commit(sizes[0], sizes[1]);
  buffer->changed();
  return 0;
}
