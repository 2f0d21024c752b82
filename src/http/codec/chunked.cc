#include "http/codec/chunked.h"

#include <algorithm>

#include "base/hex.h"
#include "http/codec/characters.h"
#include "http/codec/head.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

constexpr int kMostDigits = 16;
constexpr std::uint64_t kMostSize = INT64_MAX;
constexpr std::uint32_t kFreeBytes = 16;  // Allowed framing per chunk.

constexpr std::uint64_t bits_of(auto... ids) { return (bit_of(ids) | ...); }

// Fields that would frame a body that has already ended: an attack on another parser.
constexpr std::uint64_t kRefusedTrailers =
    bits_of(FieldId::transfer_encoding, FieldId::content_length);
constexpr std::uint64_t kNotInTrailers =
    kRefusedTrailers |
    bits_of(FieldId::host, FieldId::connection, FieldId::keep_alive, FieldId::proxy_connection,
            FieldId::te, FieldId::trailer, FieldId::upgrade, FieldId::max_forwards,
            FieldId::forwarded, FieldId::x_forwarded_for, FieldId::x_forwarded_host,
            FieldId::x_forwarded_proto) |
    bits_of(FieldId::expect, FieldId::range, FieldId::if_match, FieldId::if_none_match,
            FieldId::if_modified_since, FieldId::if_unmodified_since, FieldId::if_range,
            FieldId::cache_control, FieldId::pragma, FieldId::age, FieldId::expires, FieldId::date,
            FieldId::location, FieldId::retry_after, FieldId::vary) |
    bits_of(FieldId::authorization, FieldId::proxy_authorization, FieldId::www_authenticate,
            FieldId::proxy_authenticate, FieldId::cookie, FieldId::set_cookie) |
    bits_of(FieldId::content_encoding, FieldId::content_type, FieldId::content_range);

// Returns 0 ... 15, or -1.
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

bool may_be_trailer(FieldId id) {
  return id == FieldId::other || (kNotInTrailers & bit_of(id)) == 0;
}

bool may_be_trailers(const Fields& fields) {
  return fields.is_complete() && !fields.view().contains_any(kNotInTrailers);
}

ChunkedDecoder::Step ChunkedDecoder::next(Bytes bytes, Fields& trailers) {
  std::size_t used = 0;
  for (; used < bytes.size() && place_ != Place::trailers; ++used) {
    if (place_ == Place::end) return {State::end, used};
    if (place_ == Place::data) {
      const std::size_t there = bytes.size() - used;
      return {State::data, used, bytes.subspan(used, std::min<std::uint64_t>(left_, there))};
    }
    if (const Refusal refusal = pass(static_cast<char>(bytes[used]))) return fail(used, refusal);
  }
  if (place_ == Place::end) return {State::end, used};
  if (place_ != Place::trailers) return {State::unfinished, used};
  return next_trailers(bytes.subspan(used), used, trailers);
}

void ChunkedDecoder::take(std::size_t count) {
  SPATE_ASSERT(place_ == Place::data ? count <= left_ : count == 0,
               "take() at most the bytes of data()");
  left_ -= count;
  size_ += count;
  if (place_ == Place::data && left_ == 0) place_ = Place::data_return;
}

// Processes one byte of framing.
Refusal ChunkedDecoder::pass(char c) {
  if (++excess_ > kMostExcess + kFreeBytes) return bad_request("too much framing for its data");
  switch (place_) {
    case Place::size_begin:
    case Place::size:
      if (add_digit(c)) return {};
      if (digits_ == 0 || hex_value(c) >= 0) return bad_request("a chunk's size is not a number");
      place_ = is_blank(c) ? behind_padding() : behind_size(c);
      break;
    case Place::padding:
      if (!is_blank(c)) place_ = behind_size(c);
      break;
    case Place::size_line_feed:
      if (c != '\n') return bad_request("a chunk's size does not end with CR LF");
      begin_data();
      return {};
    case Place::data_return:
      if (c != '\r') return bad_request("a chunk does not end with CR LF");
      place_ = Place::data_line_feed;
      return {};
    case Place::data_line_feed:
      if (c != '\n') return bad_request("a chunk does not end with CR LF");
      place_ = Place::size_begin;
      return {};
    default:
      place_ = in_extension(c);
  }
  return place_ == Place::broken ? bad_request("a chunk's extension is not of the grammar")
                                 : Refusal();
}

ChunkedDecoder::Place ChunkedDecoder::behind_padding() const {
  return passes_blanks_ ? Place::padding : Place::broken;
}

// Adds a digit of the size. False if it is invalid, or one too many.
bool ChunkedDecoder::add_digit(char c) {
  const int digit = hex_value(c);
  if (digit < 0 || digits_ == kMostDigits || left_ > kMostSize >> 4) return false;
  left_ = left_ << 4 | static_cast<unsigned>(digit);
  ++digits_;
  place_ = Place::size;
  return true;
}

ChunkedDecoder::Step ChunkedDecoder::fail(std::size_t used, Refusal refusal) {
  place_ = Place::broken;
  return {State::broken, used, {}, refusal};
}

// Returns the next state, or `broken`. Blanks are allowed before an extension, not before CR.
ChunkedDecoder::Place ChunkedDecoder::behind_size(char c) {
  if (c == '\r') return Place::size_line_feed;
  if (c == ';') return Place::name_begin;
  return is_blank(c) ? Place::blank_before_extension : Place::broken;
}

// After the size: *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
ChunkedDecoder::Place ChunkedDecoder::in_extension(char c) const {
  switch (place_) {
    case Place::blank_before_extension:
      return c == '\r' ? Place::broken : behind_size(c);
    case Place::name_begin:
      if (is_blank(c)) return Place::name_begin;
      return is_in(c, kToken) ? Place::name : Place::broken;
    case Place::name:
      if (is_in(c, kToken)) return Place::name;
      if (c == '=') return Place::value_begin;
      return is_blank(c) ? Place::blank_behind_name : behind_size(c);
    case Place::blank_behind_name:
      if (c == '=') return Place::value_begin;
      if (c == ';') return Place::name_begin;
      return is_blank(c) ? Place::blank_behind_name : Place::broken;
    case Place::value_begin:
      if (is_blank(c)) return Place::value_begin;
      if (c == '"') return Place::quoted;
      return is_in(c, kToken) ? Place::value : Place::broken;
    case Place::value:
      return is_in(c, kToken) ? Place::value : behind_size(c);
    case Place::quoted:
      if (c == '"') return Place::behind_quoted;
      if (c == '\\') return Place::escaped;
      return is_in(c, kValue) ? Place::quoted : Place::broken;
    case Place::escaped:
      return is_in(c, kValue) ? Place::quoted : Place::broken;
    default:  // Place::behind_quoted
      return behind_size(c);
  }
}

// Data pays for framing: the excess is reduced in proportion to the chunk's size.
void ChunkedDecoder::begin_data() {
  const std::uint64_t credit = kFreeBytes + 2 * std::min<std::uint64_t>(left_, kMostExcess);
  excess_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(excess_, credit));
  digits_ = 0;
  place_ = left_ == 0 ? Place::trailers : Place::data;
}

ChunkedDecoder::Step ChunkedDecoder::next_trailers(Bytes bytes, std::size_t used,
                                                   Fields& trailers) {
  constexpr HeadLimits kLimits = {.head = kMostTrailerBytes, .line = kMostTrailerBytes};
  TrailerHead head;
  const Parsed parsed = parse_trailers(bytes, looked_at_, kLimits, head);
  if (parsed.state == Parsed::State::broken) return fail(used, parsed.refusal);
  looked_at_ = static_cast<std::uint32_t>(parsed.looked_at);
  if (parsed.state == Parsed::State::unfinished) return {State::unfinished, used};
  if (head.fields.contains_any(kRefusedTrailers))
    return fail(used, bad_request("the trailer section has a framing field"));
  for (const Field field : head.fields)
    if (may_be_trailer(field.id) && !trailers.add(field.name, field.value))
      return fail(used, {Status::service_unavailable, "no memory for trailers"});
  place_ = Place::end;
  return {State::end, used + head.size};
}

ChunkHeader::ChunkHeader(std::uint64_t size) : begin_(sizeof(text_)) {
  text_[--begin_] = '\n';
  text_[--begin_] = '\r';
  do text_[--begin_] = kHexDigits[size & 15];
  while ((size >>= 4) != 0);
}

}  // namespace spate::http
