#include <algorithm>
#include <cerrno>

#include "http/codec/characters.h"
#include "http/codec/system_error.h"
#include "http/codec/zlib_memory.h"
#include "spate/assert.h"
#include "spate/http/compression.h"

namespace spate::http {

namespace {

constexpr std::size_t kInflatedAtLeast = 2048;
constexpr int kZlibBits = 15;
constexpr int kGzipBits = 15 + 16;
constexpr int kRawBits = -15;

// Returns whether a byte begins the format of RFC 1950: method 8, and a window of at most 32 KiB.
bool begins_zlib(std::byte first) {
  const auto byte = std::to_integer<unsigned>(first);
  return (byte & 0x0f) == 8 && byte >> 4 <= 7;
}

}  // namespace

struct Decompressor::Stream {
  z_stream zlib = {};
};

void Decompressor::Close::operator()(Stream* stream) const {
  inflateEnd(&stream->zlib);
  deallocate(stream);
}

std::string_view name_of(Coding coding) { return coding == Coding::gzip ? "gzip" : "deflate"; }

std::optional<Coding> coding_of(std::string_view name) {
  if (equal_ignoring_case(name, "gzip") || equal_ignoring_case(name, "x-gzip")) return Coding::gzip;
  if (equal_ignoring_case(name, "deflate")) return Coding::deflate;
  return {};
}

Result<Decompressor> Decompressor::make(Coding coding, std::uint64_t limit) {
  Stream* stream = make_zlib_stream<Stream>();
  if (stream == nullptr || inflateInit2(&stream->zlib, kGzipBits) != Z_OK) {
    deallocate(stream);
    return std::unexpected(system_error(ENOMEM));
  }
  return Decompressor(std::unique_ptr<Stream, Close>(stream), coding, limit);
}

Decompressor::State Decompressor::fail(std::errc error) {
  error_ = system_error(static_cast<int>(error));
  return State::broken;
}

// Begins a gzip member or a body. False if nothing may follow the last one.
bool Decompressor::begin_member(std::byte first) {
  constexpr std::byte kGzipMagic{0x1f};
  const bool is_gzip = coding_ == Coding::gzip;
  if (place_ == Place::end && (!is_gzip || first != kGzipMagic)) return false;
  const int bits = is_gzip ? kGzipBits : begins_zlib(first) ? kZlibBits : kRawBits;
  inflateReset2(&stream_->zlib, bits);
  place_ = Place::inside;
  return true;
}

Decompressor::State Decompressor::next(Bytes& bytes, Buffer& target, std::size_t most) {
  SPATE_ASSERT(most > 0, "`most` must be positive");
  if (error_) return State::broken;
  for (;;) {
    if (place_ != Place::inside) {
      if (bytes.empty()) return State::unfinished;
      if (!begin_member(bytes.front())) return fail(std::errc::bad_message);
    }
    const State state = run(bytes, target, most);
    if (state != State::full || most == 0) return state;
  }
}

// Calls zlib once. At the limit zlib writes into a separate byte: if it does, the body is too long.
Decompressor::State Decompressor::run(Bytes& bytes, Buffer& target, std::size_t& most) {
  z_stream& zlib = stream_->zlib;
  std::byte beyond;
  std::span<std::byte> room(&beyond, 1);
  const bool is_at_limit = made_ == limit_;
  if (!is_at_limit) {
    const auto left = static_cast<std::size_t>(std::min<std::uint64_t>(limit_ - made_, SIZE_MAX));
    room = target.reserve(std::min({kInflatedAtLeast, most, left}));
    if (room.empty()) return fail(std::errc::not_enough_memory);
    room = room.first(std::min({room.size(), most, left, kMostOfZlib}));
  }
  const Bytes part = bytes.first(std::min(bytes.size(), kMostOfZlib));
  set_input(zlib, part);
  set_output(zlib, room);
  const int result = inflate(&zlib, Z_NO_FLUSH);
  bytes = bytes.subspan(part.size() - zlib.avail_in);
  const std::size_t size = room.size() - zlib.avail_out;
  if (is_at_limit && size > 0) return fail(std::errc::message_size);
  target.commit(size);
  made_ += size;
  most -= size;
  if (result == Z_MEM_ERROR) return fail(std::errc::not_enough_memory);
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
    return fail(std::errc::bad_message);
  if (result == Z_STREAM_END) place_ = Place::end;
  // More input, or output inside zlib that did not fit, is left for the next call.
  const bool has_more = !bytes.empty() || zlib.avail_out == 0;
  return has_more ? State::full : State::unfinished;
}

void Decompressor::reset() {
  made_ = 0;
  place_ = Place::start;
  error_ = {};
}

}  // namespace spate::http
