#include "http/codec/message_coding.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "http/codec/system_error.h"
#include "http/codec/zlib_memory.h"

namespace spate::http {

namespace {

constexpr int kRawWindow = -15;
constexpr int kFastLevel = 4;
constexpr int kUsualMemory = 8;
// What a flush ends with. It is left out on the wire.
constexpr std::byte kTail[] = {std::byte{0}, std::byte{0}, std::byte{0xff}, std::byte{0xff}};
constexpr std::size_t kFirstRoom = 4096;
constexpr std::size_t kMostKept = 64 * 1024;  // Of memory, from one message to the next.

void begin(Array<std::byte>& made) {
  if (made.capacity() > kMostKept) made = {};
  made.clear();
}

}  // namespace

struct ZlibStream {
  z_stream zlib = {};
};

MessageDeflater::~MessageDeflater() {
  if (stream_ == nullptr) return;
  deflateEnd(&stream_->zlib);
  deallocate(stream_);
}

// There is room for all that can come of it, so it is one step.
Bytes MessageDeflater::compress(Bytes message) {
  if (message.size() > kMostOfZlib) return {};
  if (stream_ == nullptr) {
    stream_ = make_zlib_stream<ZlibStream>();
    if (stream_ == nullptr) return {};
    if (deflateInit2(&stream_->zlib, kFastLevel, Z_DEFLATED, kRawWindow, kUsualMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      deallocate(std::exchange(stream_, nullptr));
      return {};
    }
  }
  z_stream& zlib = stream_->zlib;
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
    if (inflateInit2(&stream_->zlib, kRawWindow) != Z_OK) {
      deallocate(std::exchange(stream_, nullptr));
      return std::unexpected(system_error(ENOMEM));
    }
  }
  inflateReset(&stream_->zlib);
  begin(made_);
  for (Bytes part : {message, Bytes(kTail)}) {
    if (const std::error_code error = inflate_some(part, limit)) return std::unexpected(error);
  }
  return Bytes(made_.begin(), made_.size());
}

// All of it. A byte more than the limit is asked for, which shows that there is more.
std::error_code MessageInflater::inflate_some(Bytes& part, std::size_t limit) {
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
    if (result == Z_STREAM_END) inflateReset(&zlib);
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END)
      return system_error(EBADMSG);
  } while (!part.empty() || zlib.avail_out == 0);
  return made_.size() > limit ? system_error(EMSGSIZE) : std::error_code();
}

}  // namespace spate::http
