// Tagged data in an evbuffer: a tag, the length of the payload, and the payload.
//
// Semantics: event2/tag.h; the encoding of tags and integers, and how much of bad data is consumed:
// probes.
//
// A tag is written seven bits at a time, the lowest first; an integer four bits at a time, the
// lowest first, after four bits that say how many more of them there are.
#include <climits>

#include "compat/libevent/buffer_api.h"
#include "compat/libevent/memory.h"

namespace {

constexpr int kTagBytesMost = 5;
constexpr int kIntegerBytesMost = 9;

struct Encoded {
  unsigned char bytes[2 * kIntegerBytesMost];
  std::size_t size = 0;
};

void encode_tag(Encoded& to, ev_uint32_t tag) {
  for (; tag > 0x7f; tag >>= 7) to.bytes[to.size++] = static_cast<unsigned char>(tag | 0x80);
  to.bytes[to.size++] = static_cast<unsigned char>(tag);
}

void encode_integer(Encoded& to, ev_uint64_t number) {
  unsigned nibbles = 1;
  while (nibbles < 16 && number >> (4 * nibbles) != 0) ++nibbles;
  unsigned high = nibbles - 1;
  for (unsigned done = 0; done <= nibbles; done += 2) {
    const bool has_low = done < nibbles;
    const unsigned low = has_low ? number & 0xf : 0;
    to.bytes[to.size++] = static_cast<unsigned char>(high << 4 | low);
    high = number >> 4 & 0xf;
    number >>= 8;
  }
}

void add(evbuffer* buffer, const Encoded& encoded) {
  evbuffer_add(buffer, encoded.bytes, encoded.size);
}

void add_header(evbuffer* buffer, ev_uint32_t tag, ev_uint64_t length) {
  Encoded encoded;
  encode_tag(encoded, tag);
  encode_integer(encoded, length);
  add(buffer, encoded);
}

// Copies up to `most` bytes from `offset` on. Returns how many it copied.
int look(evbuffer* buffer, int offset, unsigned char* bytes, int most) {
  evbuffer_ptr start;
  if (evbuffer_ptr_set(buffer, &start, static_cast<std::size_t>(offset), EVBUFFER_PTR_SET) != 0) {
    return 0;
  }
  return static_cast<int>(
      evbuffer_copyout_from(buffer, &start, bytes, static_cast<std::size_t>(most)));
}

// Returns the size of the tag at the front; -1 if it is invalid or incomplete.
int decode_tag(evbuffer* buffer, ev_uint32_t& tag) {
  unsigned char bytes[kTagBytesMost];
  const int count = look(buffer, 0, bytes, kTagBytesMost);
  ev_uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= ev_uint64_t{bytes[i] & 0x7fU} << (7 * i);
    if (value > EV_UINT32_MAX) return -1;
    if ((bytes[i] & 0x80) != 0) continue;
    tag = static_cast<ev_uint32_t>(value);
    return i + 1;
  }
  return -1;
}

// Decodes an integer at `offset` in the same way. It may extend beyond its payload, as in libevent.
template <class T>
int decode_integer(evbuffer* buffer, int offset, T& number) {
  unsigned char bytes[kIntegerBytesMost];
  const int count = look(buffer, offset, bytes, kIntegerBytesMost);
  if (count < 1) return -1;
  const unsigned nibbles = (bytes[0] >> 4) + 1U;
  const int needed = static_cast<int>(nibbles / 2) + 1;
  if (nibbles > sizeof(T) * 2 || count < needed) return -1;
  T value = 0;
  for (unsigned i = 0; i < nibbles; ++i) {
    const unsigned char byte = bytes[(i + 1) / 2];
    const unsigned nibble = i % 2 == 0 ? byte & 0xfU : byte >> 4;
    value |= static_cast<T>(nibble) << (4 * i);
  }
  number = value;
  return needed;
}

// Removes the tag from the front.
int take_tag(evbuffer* buffer, ev_uint32_t& tag) {
  const int size = decode_tag(buffer, tag);
  if (size > 0) evbuffer_drain(buffer, static_cast<std::size_t>(size));
  return size;
}

// Removes a length from the front; returns -1 if fewer bytes follow.
int take_length(evbuffer* buffer) {
  ev_uint32_t length;
  const int size = decode_integer(buffer, 0, length);
  if (size < 0) return -1;
  evbuffer_drain(buffer, static_cast<std::size_t>(size));
  return length <= INT_MAX && length <= evbuffer_get_length(buffer) ? static_cast<int>(length) : -1;
}

template <class T>
int unmarshal_integer(evbuffer* buffer, ev_uint32_t wanted, T* number) {
  ev_uint32_t tag;
  if (take_tag(buffer, tag) < 0 || tag != wanted) return -1;
  const int length = take_length(buffer);
  if (length < 0) return -1;
  const int size = decode_integer(buffer, 0, *number);
  evbuffer_drain(buffer, static_cast<std::size_t>(length));
  return size > length ? -1 : size;
}

// The sizes of the header's two parts, and the length that it encodes. peek_header() returns false
// if it is incomplete.
struct Header {
  int tag_size;
  int length_size;
  ev_uint32_t length;
};

bool peek_header(evbuffer* buffer, Header& header) {
  ev_uint32_t tag;
  header.tag_size = decode_tag(buffer, tag);
  if (header.tag_size < 0) return false;
  header.length_size = decode_integer(buffer, header.tag_size, header.length);
  return header.length_size >= 0;
}

}  // namespace

// ---- the exported functions: writing

void evtag_init() {}

void evtag_encode_int(evbuffer* buffer, ev_uint32_t number) { evtag_encode_int64(buffer, number); }

void evtag_encode_int64(evbuffer* buffer, ev_uint64_t number) {
  Encoded encoded;
  encode_integer(encoded, number);
  add(buffer, encoded);
}

void evtag_marshal(evbuffer* buffer, ev_uint32_t tag, const void* bytes, ev_uint32_t length) {
  add_header(buffer, tag, length);
  evbuffer_add(buffer, bytes, length);
}

void evtag_marshal_buffer(evbuffer* buffer, ev_uint32_t tag, evbuffer* payload) {
  Encoded encoded;
  encode_tag(encoded, tag);
  add(buffer, encoded);
  Encoded length;  // It includes the tag if the payload is the buffer itself.
  encode_integer(length, evbuffer_get_length(payload));
  add(buffer, length);
  evbuffer_add_buffer(buffer, payload);
}

void evtag_marshal_int(evbuffer* buffer, ev_uint32_t tag, ev_uint32_t number) {
  evtag_marshal_int64(buffer, tag, number);
}

void evtag_marshal_int64(evbuffer* buffer, ev_uint32_t tag, ev_uint64_t number) {
  Encoded encoded;
  encode_integer(encoded, number);
  evtag_marshal(buffer, tag, encoded.bytes, static_cast<ev_uint32_t>(encoded.size));
}

void evtag_marshal_string(evbuffer* buffer, ev_uint32_t tag, const char* text) {
  evtag_marshal(buffer, tag, text, static_cast<ev_uint32_t>(__builtin_strlen(text)));
}

void evtag_marshal_timeval(evbuffer* buffer, ev_uint32_t tag, timeval* time) {
  Encoded encoded;
  encode_integer(encoded, static_cast<ev_uint32_t>(time->tv_sec));
  encode_integer(encoded, static_cast<ev_uint32_t>(time->tv_usec));
  evtag_marshal(buffer, tag, encoded.bytes, static_cast<ev_uint32_t>(encoded.size));
}

// ---- looking

int evtag_peek(evbuffer* buffer, ev_uint32_t* tag) {
  ev_uint32_t found;
  const int size = decode_tag(buffer, found);
  if (size > 0 && tag != nullptr) *tag = found;
  return size;
}

int evtag_peek_length(evbuffer* buffer, ev_uint32_t* length) {
  Header header;
  if (!peek_header(buffer, header)) return -1;
  *length = header.length + static_cast<ev_uint32_t>(header.tag_size + header.length_size);
  return 0;
}

int evtag_payload_length(evbuffer* buffer, ev_uint32_t* length) {
  Header header;
  if (!peek_header(buffer, header)) return -1;
  *length = header.length;
  return 0;
}

// ---- reading

int evtag_unmarshal_header(evbuffer* buffer, ev_uint32_t* tag) {
  ev_uint32_t found;
  if (take_tag(buffer, found) < 0) return -1;
  if (tag != nullptr) *tag = found;
  return take_length(buffer);
}

int evtag_consume(evbuffer* buffer) {
  const int length = evtag_unmarshal_header(buffer, nullptr);
  if (length < 0) return -1;
  evbuffer_drain(buffer, static_cast<std::size_t>(length));
  return 0;
}

int evtag_unmarshal(evbuffer* source, ev_uint32_t* tag, evbuffer* target) {
  const int length = evtag_unmarshal_header(source, tag);
  if (length < 0) return -1;
  const auto size = static_cast<std::size_t>(length);
  if (evbuffer_add(target, evbuffer_pullup(source, length), size) != 0) return -1;
  evbuffer_drain(source, size);
  return length;
}

int evtag_unmarshal_int(evbuffer* buffer, ev_uint32_t tag, ev_uint32_t* number) {
  return unmarshal_integer(buffer, tag, number);
}

int evtag_unmarshal_int64(evbuffer* buffer, ev_uint32_t tag, ev_uint64_t* number) {
  return unmarshal_integer(buffer, tag, number);
}

int evtag_unmarshal_fixed(evbuffer* source, ev_uint32_t wanted, void* bytes, size_t size) {
  ev_uint32_t tag;
  const int length = evtag_unmarshal_header(source, &tag);
  if (length < 0 || tag != wanted || static_cast<std::size_t>(length) != size) return -1;
  evbuffer_remove(source, bytes, size);
  return 0;
}

int evtag_unmarshal_string(evbuffer* buffer, ev_uint32_t wanted, char** text) {
  ev_uint32_t tag;
  const int length = evtag_unmarshal_header(buffer, &tag);
  if (length < 0 || tag != wanted) return -1;
  const auto size = static_cast<std::size_t>(length);
  *text = static_cast<char*>(spate::libevent::allocate(size + 1));
  if (*text == nullptr) return -1;
  evbuffer_remove(buffer, *text, size);
  (*text)[size] = '\0';
  return 0;
}

// Removes the payload even if it is invalid.
int evtag_unmarshal_timeval(evbuffer* buffer, ev_uint32_t wanted, timeval* time) {
  ev_uint32_t tag;
  const int length = evtag_unmarshal_header(buffer, &tag);
  if (length < 0) return -1;
  ev_uint32_t seconds;
  ev_uint32_t micros;
  int size = tag == wanted ? decode_integer(buffer, 0, seconds) : -1;
  if (size >= 0) {
    time->tv_sec = seconds;
    const int more = decode_integer(buffer, size, micros);
    if (more >= 0) time->tv_usec = micros;
    size = more >= 0 && size + more <= length ? 0 : -1;
  }
  evbuffer_drain(buffer, static_cast<std::size_t>(length));
  return size;
}
