// Removing bytes from a buffer, and reading them in place.
//
// Semantics: event2/buffer.h; probed: an empty buffer drains even while it is frozen, and the
// counts of evbuffer_peek().
#include <algorithm>
#include <cstring>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/buffer/file_segment.h"

using namespace spate::libevent;

bool evbuffer::map_files() {
  for (Piece* piece = in_->first; piece != nullptr; piece = piece->next) {
    if (!is_unmapped(*piece)) continue;
    auto* part = static_cast<FilePiece*>(piece);
    if (!part->segment->load()) return false;
    part->data = part->segment->contents() + part->offset;
  }
  in_->may_have_unmapped = false;
  return true;
}

// Unlinks the pieces within the first `count` bytes, and reduces `count` by their size.
void evbuffer::unlink_first_pieces(std::size_t& count, Piece*& unlinked) {
  Piece** end = &unlinked;
  while (in_->first != nullptr && in_->first->size <= count) {
    count -= in_->first->size;
    *end = in_->first;
    end = &in_->first->next;
    in_->first = in_->first->next;
  }
  *end = nullptr;
  if (in_->first == nullptr) {
    in_->last = nullptr;
    in_->may_have_unmapped = false;
  }
}

// The program's memory is released last, when the buffer is consistent: its cleanup functions may
// use it.
void evbuffer::consume(std::size_t count) {
  in_->size -= count;
  in_->deleted += count;
  Piece* unlinked = nullptr;
  unlink_first_pieces(count, unlinked);
  if (count != 0) shorten(*in_->first, count);
  release_pieces(unlinked);
}

void evbuffer::discard(std::size_t count) {
  const Use use(this);
  if (size() == 0) return;
  consume(count < size() ? count : size());
  changed();
}

bool evbuffer::move_to(evbuffer& other, std::size_t count) {
  Piece* cut = in_->first;
  std::size_t rest = count;
  while (rest >= cut->size) {
    rest -= cut->size;
    cut = cut->next;
  }
  Piece* split = nullptr;
  if (rest != 0 && is_unmapped(*cut)) {
    auto* part = static_cast<FilePiece*>(cut);
    split = make_file_piece(*part->segment, part->offset, rest);
    if (split == nullptr) return false;
  } else if (rest != 0) {
    OwnPiece* copy = make_own_piece(rest);
    if (copy == nullptr) return false;
    std::memcpy(copy->data, cut->data, rest);
    copy->size = rest;
    split = copy;
  }
  std::size_t left = count;
  Piece* moved = nullptr;
  unlink_first_pieces(left, moved);
  while (moved != nullptr) {
    Piece* next = moved->next;
    other.link_last(moved);
    moved = next;
  }
  if (split != nullptr) {
    shorten(*in_->first, rest);
    other.link_last(split);
  }
  in_->size -= count;
  in_->deleted += count;
  return true;
}

Cursor evbuffer::cursor_at(std::size_t offset) const {
  const Piece* piece = in_->first;
  while (piece != nullptr && offset >= piece->size) {
    offset -= piece->size;
    piece = piece->next;
  }
  return {piece, offset};
}

std::size_t evbuffer::copy(Cursor from, void* target, std::size_t count) const {
  auto* to = static_cast<unsigned char*>(target);
  std::size_t left = count;
  while (left != 0 && from.piece != nullptr) {
    const std::size_t here = from.piece->size - from.offset;
    const std::size_t taken = std::min(left, here);
    std::memcpy(to, from.piece->data + from.offset, taken);
    to += taken;
    left -= taken;
    from = {from.piece->next, 0};
  }
  return count - left;
}

// Copies the bytes; the old pieces are released, and the length stays.
unsigned char* evbuffer::make_contiguous(std::size_t count) {
  if (in_->first->size >= count) return in_->first->data;
  OwnPiece* whole = make_own_piece(count);
  if (whole == nullptr) return nullptr;
  copy({in_->first, 0}, whole->data, count);
  whole->size = count;
  Piece* copied = nullptr;
  std::size_t rest = count;
  unlink_first_pieces(rest, copied);
  if (rest != 0) shorten(*in_->first, rest);
  whole->next = in_->first;
  in_->first = whole;
  if (in_->last == nullptr) in_->last = whole;
  release_pieces(copied);
  return whole->data;
}

// ---- the exported functions: removing

int evbuffer_drain(evbuffer* buffer, size_t count) {
  const Use use(buffer);
  if (buffer->size() == 0) return 0;
  if (buffer->is_front_frozen()) return -1;
  buffer->discard(count);
  return 0;
}

int evbuffer_remove(evbuffer* buffer, void* target, size_t count) {
  const Use use(buffer);
  const ev_ssize_t copied = evbuffer_copyout(buffer, target, count);
  if (copied > 0) {
    buffer->consume(static_cast<std::size_t>(copied));
    buffer->changed();
  }
  return static_cast<int>(copied);
}

int evbuffer_remove_buffer(evbuffer* source, evbuffer* target, size_t count) {
  const UseBoth use(source, target);
  if (count == 0 || source == target) return 0;
  if (target->is_back_frozen() || source->is_front_frozen()) return -1;
  if (count > source->size()) count = source->size();
  if (count == 0) return 0;
  if (!target->can_grow_by(count)) return -1;
  if (count == source->size()) {
    target->append_all(*source);
    source->changed();
    target->changed();
  } else {
    if (!source->move_to(*target, count)) return -1;
    target->changed();
    source->changed();
  }
  return static_cast<int>(count);
}

// ---- looking

ev_ssize_t evbuffer_copyout(evbuffer* buffer, void* target, size_t count) {
  return evbuffer_copyout_from(buffer, nullptr, target, count);
}

ev_ssize_t evbuffer_copyout_from(evbuffer* buffer, const evbuffer_ptr* start, void* target,
                                 size_t count) {
  const Use use(buffer);
  const ev_ssize_t offset = start != nullptr ? start->pos : 0;
  if (offset < 0 || static_cast<std::size_t>(offset) > buffer->size()) return -1;
  if (start != nullptr && count > kLengthMost - static_cast<std::size_t>(offset)) return -1;
  const std::size_t most = buffer->size() - static_cast<std::size_t>(offset);
  if (count > most) count = most;
  if (count == 0) return 0;
  if (buffer->is_front_frozen() || !buffer->make_readable()) return -1;
  buffer->copy(buffer->cursor_at(static_cast<std::size_t>(offset)), target, count);
  return static_cast<ev_ssize_t>(count);
}

unsigned char* evbuffer_pullup(evbuffer* buffer, ev_ssize_t size) {
  const Use use(buffer);
  const std::size_t count = size < 0 ? buffer->size() : static_cast<std::size_t>(size);
  if (count == 0 || count > buffer->size() || !buffer->make_readable()) return nullptr;
  return buffer->make_contiguous(count);
}

int evbuffer_peek(evbuffer* buffer, ev_ssize_t length, evbuffer_ptr* start, evbuffer_iovec* extents,
                  int count) {
  const ev_ssize_t offset = start != nullptr ? start->pos : 0;
  if (offset < 0) return 0;
  const Use use(buffer);
  if (!buffer->make_readable()) return 0;
  Cursor at = buffer->cursor_at(static_cast<std::size_t>(offset));
  const bool stops_when_full = length < 0 && count > 0;
  std::size_t wanted = length < 0 ? kLengthMost : static_cast<std::size_t>(length);
  if (wanted == 0 && start != nullptr) wanted = 1;  // As libevent.
  std::size_t seen = 0;
  int used = 0;
  while (at.piece != nullptr && seen < wanted && !(stops_when_full && used >= count)) {
    const std::size_t here = at.piece->size - at.offset;
    if (used < count) extents[used] = {at.piece->data + at.offset, here};
    ++used;
    seen += here;
    at = {at.piece->next, 0};
  }
  return used;
}
