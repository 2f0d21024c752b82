#include <algorithm>
#include <cerrno>

#include "http/codec/system_error.h"
#include "http/codec/zlib_memory.h"
#include "spate/assert.h"
#include "spate/http/compression.h"

namespace spate::http {

namespace {

constexpr std::size_t kRoomAtLeast = 512;
constexpr int kWindowBits = 15;
constexpr int kGzipFormat = 16;
constexpr int kMemoryLevel = 8;

}  // namespace

struct Compressor::Stream {
  z_stream zlib = {};
};

void Compressor::Close::operator()(Stream* stream) const {
  deflateEnd(&stream->zlib);
  deallocate(stream);
}

Result<Compressor> Compressor::make(Coding coding, int level) {
  SPATE_ASSERT(level >= 1 && level <= 9, "the level is 1 ... 9");
  Stream* stream = make_zlib_stream<Stream>();
  const int bits = kWindowBits + (coding == Coding::gzip ? kGzipFormat : 0);
  if (stream == nullptr || deflateInit2(&stream->zlib, level, Z_DEFLATED, bits, kMemoryLevel,
                                        Z_DEFAULT_STRATEGY) != Z_OK) {
    deallocate(stream);
    return std::unexpected(system_error(ENOMEM));
  }
  return Compressor(std::unique_ptr<Stream, Close>(stream));
}

// Runs zlib until it leaves room in the output: then it has no more to write.
bool Compressor::run(Bytes bytes, Buffer& target, int flush) {
  SPATE_ASSERT(!has_ended_, "call reset() before compressing another body");
  z_stream& zlib = stream_->zlib;
  set_input(zlib, bytes);
  do {
    const std::span<std::byte> room = target.reserve(kRoomAtLeast);
    if (room.empty()) return false;
    const std::size_t size = std::min(room.size(), kMostOfZlib);
    set_output(zlib, room.first(size));
    deflate(&zlib, flush);
    target.commit(size - zlib.avail_out);
  } while (zlib.avail_out == 0);
  return true;
}

bool Compressor::write(Bytes bytes, Buffer& target) {
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), kMostOfZlib));
    if (!run(part, target, Z_NO_FLUSH)) return false;
    bytes = bytes.subspan(part.size());
  }
  return true;
}

bool Compressor::flush(Buffer& target) { return run({}, target, Z_SYNC_FLUSH); }

bool Compressor::end(Buffer& target) {
  const bool is_whole = run({}, target, Z_FINISH);
  has_ended_ = true;
  return is_whole;
}

void Compressor::reset() {
  deflateReset(&stream_->zlib);
  has_ended_ = false;
}

}  // namespace spate::http
