#include "http/codec/message_coding.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "http/codec/system_error.h"
#include "http/codec/zlib_memory.h"

namespace spate::http {

namespace {

// Flags in z_stream::data_type after inflate(): at the end of a block, and the number of bits left.
constexpr int kAtEndOfBlock = 128;
constexpr int kBitsLeft = 63;
constexpr int kFastLevel = 4;
constexpr int kUsualMemory = 8;
// The end of a flush, which is not sent (RFC 7692 §7.2.1).
constexpr std::byte kTail[] = {std::byte{0}, std::byte{0}, std::byte{0xff}, std::byte{0xff}};
constexpr std::size_t kFirstRoom = 4096;
constexpr std::size_t kMostKept = 64 * 1024;  // Bytes kept from one message to the next.

void begin(Array<std::byte>& made) {
  if (made.capacity() > kMostKept) made = {};
  made.clear();
}

}  // namespace

struct ZlibStream {
  z_stream zlib = {};
};

MessageDeflater::~MessageDeflater() {
  for (ZlibStream* stream : streams_) {
    if (stream == nullptr) continue;
    deflateEnd(&stream->zlib);
    deallocate(stream);
  }
}

// Returns the compressor of a window size. nullptr when memory runs out.
ZlibStream* MessageDeflater::stream_for(int window) {
  ZlibStream*& stream = streams_[static_cast<std::size_t>(window - kSmallestWindow)];
  if (stream != nullptr) return stream;
  stream = make_zlib_stream<ZlibStream>();
  if (stream != nullptr && deflateInit2(&stream->zlib, kFastLevel, Z_DEFLATED, -window,
                                        kUsualMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    deallocate(std::exchange(stream, nullptr));
  return stream;
}

// Compresses in one step, into a buffer of the largest possible size. A message no larger than the
// window cannot have distances beyond it, so the compressor of the largest window can be used.
Bytes MessageDeflater::compress(Bytes message, int window) {
  if (message.size() > kMostOfZlib) return {};
  const bool fits = message.size() <= std::size_t{1} << window;
  ZlibStream* stream = stream_for(fits ? kLargestWindow : window);
  if (stream == nullptr) return {};
  z_stream& zlib = stream->zlib;
  begin(made_);
  const std::size_t room = deflateBound(&zlib, message.size()) + sizeof(kTail);
  if (!made_.reserve(room)) return {};
  deflateReset(&zlib);
  set_input(zlib, message);
  set_output(zlib, {made_.end(), room});
  deflate(&zlib, Z_SYNC_FLUSH);
  const std::size_t size = room - zlib.avail_out;
  const bool is_whole = zlib.avail_in == 0 && zlib.avail_out > 0 && size > sizeof(kTail);
  if (!is_whole || size - sizeof(kTail) >= message.size()) return {};
  return {made_.begin(), size - sizeof(kTail)};
}

MessageInflater::~MessageInflater() {
  if (stream_ == nullptr) return;
  inflateEnd(&stream_->zlib);
  deallocate(stream_);
}

Result<Bytes> MessageInflater::decompress(Bytes message, std::size_t limit) {
  if (stream_ == nullptr) {
    stream_ = make_zlib_stream<ZlibStream>();
    if (stream_ == nullptr) return std::unexpected(system_error(ENOMEM));
    if (inflateInit2(&stream_->zlib, -kLargestWindow) != Z_OK) {
      deallocate(std::exchange(stream_, nullptr));
      return std::unexpected(system_error(ENOMEM));
    }
  }
  inflateReset(&stream_->zlib);
  begin(made_);
  has_ended_ = message.empty();
  if (const std::error_code error = inflate_some(message, limit)) return std::unexpected(error);
  if (!has_ended_) {
    if (const std::error_code error = inflate_tail(limit)) return std::unexpected(error);
  }
  return Bytes(made_.begin(), made_.size());
}

// The tail must end an empty stored block. Inside a truncated block it would be taken for data.
std::error_code MessageInflater::inflate_tail(std::size_t limit) {
  const std::size_t size = made_.size();
  if (const std::error_code error = inflate_some(kTail, limit)) return error;
  const int place = stream_->zlib.data_type;
  const bool is_whole =
      made_.size() == size && (place & kAtEndOfBlock) != 0 && (place & kBitsLeft) == 0;
  return is_whole ? std::error_code() : system_error(EBADMSG);
}

// Decompresses `part`. Asks for one byte more than the limit, to detect a longer message.
std::error_code MessageInflater::inflate_some(Bytes part, std::size_t limit) {
  z_stream& zlib = stream_->zlib;
  do {
    if (made_.size() > limit) return system_error(EMSGSIZE);
    const std::size_t wanted = std::clamp(made_.size(), kFirstRoom, kMostOfZlib);
    const std::size_t most = std::min(wanted, limit - made_.size()) + 1;
    if (!made_.reserve(made_.size() + most)) return system_error(ENOMEM);
    set_input(zlib, part.first(std::min(part.size(), kMostOfZlib)));
    set_output(zlib, {made_.end(), most});
    const std::size_t given = zlib.avail_in;
    const int result = inflate(&zlib, Z_SYNC_FLUSH);
    part = part.subspan(given - zlib.avail_in);
    made_.grow_reserved(most - zlib.avail_out);
    if (result == Z_MEM_ERROR) return system_error(ENOMEM);
    if (result != Z_BUF_ERROR) has_ended_ = result == Z_STREAM_END;
    if (result == Z_STREAM_END) inflateReset(&zlib);
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END)
      return system_error(EBADMSG);
  } while (!part.empty() || zlib.avail_out == 0);
  return made_.size() > limit ? system_error(EMSGSIZE) : std::error_code();
}

}  // namespace spate::http
