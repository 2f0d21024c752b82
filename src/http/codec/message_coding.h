// permessage-deflate (RFC 7692): messages compressed one by one. Each begins anew (no context
// takeover), so that one pair of these serves all connections of a loop.
#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "base/array.h"
#include "spate/error.h"
#include "spate/net/bytes.h"

namespace spate::http {

struct ZlibStream;

class MessageDeflater {
 public:
  MessageDeflater() = default;
  ~MessageDeflater();
  MessageDeflater(const MessageDeflater&) = delete;
  MessageDeflater& operator=(const MessageDeflater&) = delete;

  // The message compressed, valid until the next call. Empty if that is no shorter, or when memory
  // runs out.
  Bytes compress(Bytes message);

 private:
  ZlibStream* stream_ = nullptr;  // Made when it is first needed, about 260 KiB.
  Array<std::byte> made_;
};

class MessageInflater {
 public:
  MessageInflater() = default;
  ~MessageInflater();
  MessageInflater(const MessageInflater&) = delete;
  MessageInflater& operator=(const MessageInflater&) = delete;

  // The message, of `limit` bytes at most, valid until the next call. Errors: EBADMSG if it is
  // damaged, EMSGSIZE above the limit, ENOMEM.
  Result<Bytes> decompress(Bytes message, std::size_t limit);

 private:
  std::error_code inflate_some(Bytes& part, std::size_t limit);

  ZlibStream* stream_ = nullptr;  // About 40 KiB.
  Array<std::byte> made_;
};

}  // namespace spate::http
