// permessage-deflate (RFC 7692) without context takeover: each message is compressed by itself, so
// that one pair of coders serves all connections of a loop.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <system_error>

#include "base/array.h"
#include "spate/error.h"
#include "spate/net/bytes.h"

namespace spate::http {

struct ZlibStream;

// Windows of a compressor, in bits.
inline constexpr int kSmallestWindow = 9;
inline constexpr int kLargestWindow = 15;

class MessageDeflater {
 public:
  MessageDeflater() = default;
  ~MessageDeflater();
  MessageDeflater(const MessageDeflater&) = delete;
  MessageDeflater& operator=(const MessageDeflater&) = delete;

  // Returns the compressed message, for a receiver with a window of `window` bits; valid until the
  // next call. Empty if that is not shorter, or when memory runs out.
  Bytes compress(Bytes message, int window = kLargestWindow);

 private:
  ZlibStream* stream_for(int window);

  // Made when first needed: 260 KiB for the largest window.
  std::array<ZlibStream*, kLargestWindow - kSmallestWindow + 1> streams_{};
  Array<std::byte> made_;
};

class MessageInflater {
 public:
  MessageInflater() = default;
  ~MessageInflater();
  MessageInflater(const MessageInflater&) = delete;
  MessageInflater& operator=(const MessageInflater&) = delete;

  // Returns the decompressed message, of at most `limit` bytes, valid until the next call. Errors:
  // EBADMSG if it is damaged, EMSGSIZE above the limit, ENOMEM.
  Result<Bytes> decompress(Bytes message, std::size_t limit);

 private:
  std::error_code inflate_some(Bytes part, std::size_t limit);
  std::error_code inflate_tail(std::size_t limit);

  ZlibStream* stream_ = nullptr;  // About 40 KiB.
  Array<std::byte> made_;
  bool has_ended_ = false;  // The block marked as last was seen: nothing may follow.
};

}  // namespace spate::http
