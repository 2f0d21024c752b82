// Finding: positions, strings, lines.
//
// Semantics: event2/buffer.h; probed: the ends of a range, positions beyond the end, and the length
// of a line's end.
//
// Only `pos` of an evbuffer_ptr is used. A stale pointer is therefore a valid position, at the cost
// of a walk along the pieces.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "compat/libevent/buffer/evbuffer.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr ev_ssize_t kNowhere = -1;

evbuffer_ptr pointer_to(ev_ssize_t position) {
  evbuffer_ptr pointer{};
  pointer.pos = position;
  return pointer;
}

// A position in a buffer that advances.
class Walk {
 public:
  Walk(const evbuffer& buffer, std::size_t start)
      : at_(buffer.cursor_at(start)), position_(start) {}

  bool at_end() const { return at_.piece == nullptr; }
  std::size_t position() const { return position_; }
  unsigned char byte() const { return at_.piece->data[at_.offset]; }
  Cursor cursor() const { return at_; }
  void step() {
    ++position_;
    if (++at_.offset == at_.piece->size) at_ = {at_.piece->next, 0};
  }
  // Advances to the next `byte` or the end.
  void find(unsigned char byte) {
    while (at_.piece != nullptr) {
      const unsigned char* here = at_.piece->data + at_.offset;
      const std::size_t left = at_.piece->size - at_.offset;
      if (const void* found = std::memchr(here, byte, left)) {
        const auto skipped =
            static_cast<std::size_t>(static_cast<const unsigned char*>(found) - here);
        position_ += skipped;
        at_.offset += skipped;
        return;
      }
      position_ += left;
      at_ = {at_.piece->next, 0};
    }
  }

 private:
  Cursor at_;
  std::size_t position_;
};

bool is_at(Cursor at, const char* what, std::size_t length) {
  while (at.piece != nullptr) {
    const std::size_t here = at.piece->size - at.offset;
    const std::size_t compared = std::min(length, here);
    if (std::memcmp(at.piece->data + at.offset, what, compared) != 0) return false;
    if (compared == length) return true;
    what += compared;
    length -= compared;
    at = {at.piece->next, 0};
  }
  return false;
}

// Returns the first position from `start` on where `what` lies before `end`.
ev_ssize_t find(const evbuffer& buffer, const char* what, std::size_t length, std::size_t start,
                std::size_t end) {
  for (Walk walk(buffer, start); length <= end; walk.step()) {
    walk.find(static_cast<unsigned char>(*what));
    if (walk.at_end() || walk.position() > end - length) break;
    if (is_at(walk.cursor(), what, length)) return static_cast<ev_ssize_t>(walk.position());
  }
  return kNowhere;
}

// ---- lines

bool is_line_byte(unsigned char byte) { return byte == '\r' || byte == '\n'; }

struct LineEnd {
  ev_ssize_t position = kNowhere;
  std::size_t length = 0;
};

LineEnd find_any_end(const evbuffer& buffer, std::size_t start) {
  Walk walk(buffer, start);
  while (!walk.at_end() && !is_line_byte(walk.byte())) walk.step();
  if (walk.at_end()) return {};
  LineEnd end{static_cast<ev_ssize_t>(walk.position()), 0};
  for (; !walk.at_end() && is_line_byte(walk.byte()); walk.step()) ++end.length;
  return end;
}

// A line feed, with the carriage return before it unless that is before `start`.
LineEnd find_line_feed(const evbuffer& buffer, std::size_t start) {
  Walk walk(buffer, start);
  walk.find('\n');
  if (walk.at_end()) return {};
  const std::size_t position = walk.position();
  if (position > start && Walk(buffer, position - 1).byte() == '\r') {
    return {static_cast<ev_ssize_t>(position - 1), 2};
  }
  return {static_cast<ev_ssize_t>(position), 1};
}

LineEnd find_text_end(const evbuffer& buffer, std::size_t start, const char* what,
                      std::size_t length) {
  const ev_ssize_t position = find(buffer, what, length, start, buffer.size());
  return position == kNowhere ? LineEnd{} : LineEnd{position, length};
}

LineEnd find_line_end(const evbuffer& buffer, std::size_t start, evbuffer_eol_style style) {
  switch (style) {
    case EVBUFFER_EOL_ANY:
      return find_any_end(buffer, start);
    case EVBUFFER_EOL_CRLF:
      return find_line_feed(buffer, start);
    case EVBUFFER_EOL_CRLF_STRICT:
      return find_text_end(buffer, start, "\r\n", 2);
    case EVBUFFER_EOL_LF:
      return find_text_end(buffer, start, "\n", 1);
    case EVBUFFER_EOL_NUL:
      return find_text_end(buffer, start, "", 1);
  }
  return {};
}

}  // namespace

// ---- the exported functions

int evbuffer_ptr_set(evbuffer* buffer, evbuffer_ptr* pointer, size_t position,
                     evbuffer_ptr_how how) {
  const Use use(buffer);
  if (how == EVBUFFER_PTR_ADD) {
    if (pointer->pos < 0 || position > SIZE_MAX - static_cast<std::size_t>(pointer->pos)) {
      return -1;
    }
    position += static_cast<std::size_t>(pointer->pos);
  }
  const bool exists = position <= buffer->size();
  *pointer = pointer_to(exists ? static_cast<ev_ssize_t>(position) : kNowhere);
  return exists ? 0 : -1;
}

evbuffer_ptr evbuffer_search(evbuffer* buffer, const char* what, size_t length,
                             const evbuffer_ptr* start) {
  return evbuffer_search_range(buffer, what, length, start, nullptr);
}

evbuffer_ptr evbuffer_search_range(evbuffer* buffer, const char* what, size_t length,
                                   const evbuffer_ptr* start, const evbuffer_ptr* end) {
  const Use use(buffer);
  const ev_ssize_t from = start != nullptr ? start->pos : 0;
  if (from < 0) return pointer_to(kNowhere);
  if (length == 0 || length > kLengthMost) return pointer_to(from);
  std::size_t until = buffer->size();
  if (end != nullptr && end->pos >= 0 && static_cast<std::size_t>(end->pos) < until) {
    until = static_cast<std::size_t>(end->pos);
  }
  if (!buffer->make_readable()) return pointer_to(kNowhere);
  return pointer_to(find(*buffer, what, length, static_cast<std::size_t>(from), until));
}

evbuffer_ptr evbuffer_search_eol(evbuffer* buffer, evbuffer_ptr* start, size_t* length,
                                 evbuffer_eol_style style) {
  const ev_ssize_t from = start != nullptr ? start->pos : 0;
  if (length != nullptr) *length = 0;
  if (from < 0) return pointer_to(kNowhere);
  const Use use(buffer);
  if (!buffer->make_readable()) return pointer_to(kNowhere);
  const LineEnd end = find_line_end(*buffer, static_cast<std::size_t>(from), style);
  if (length != nullptr) *length = end.length;
  return pointer_to(end.position);
}

char* evbuffer_readln(evbuffer* buffer, size_t* length, evbuffer_eol_style style) {
  const Use use(buffer);
  if (length != nullptr) *length = 0;
  if (buffer->is_front_frozen() || !buffer->make_readable()) return nullptr;
  const LineEnd end = find_line_end(*buffer, 0, style);
  if (end.position < 0) return nullptr;
  const auto size = static_cast<std::size_t>(end.position);
  auto* line = static_cast<char*>(allocate(size + 1));
  if (line == nullptr) return nullptr;
  buffer->copy(buffer->cursor_at(0), line, size);
  line[size] = '\0';
  if (length != nullptr) *length = size;
  // Two changes. The callbacks of the first may remove the bytes of the second, or freeze them.
  if (size != 0) evbuffer_drain(buffer, size);
  evbuffer_drain(buffer, end.length);
  return line;
}

char* evbuffer_readline(evbuffer* buffer) {
  return evbuffer_readln(buffer, nullptr, EVBUFFER_EOL_ANY);
}

unsigned char* evbuffer_find(evbuffer* buffer, const unsigned char* what, size_t length) {
  const Use use(buffer);
  const evbuffer_ptr found =
      evbuffer_search(buffer, reinterpret_cast<const char*>(what), length, nullptr);
  if (found.pos < 0) return nullptr;
  unsigned char* bytes = evbuffer_pullup(buffer, found.pos + static_cast<ev_ssize_t>(length));
  return bytes != nullptr ? bytes + found.pos : nullptr;
}
