// Compression of responses: the choice, the fields that describe it, and a pool of compressors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "http/codec/head.h"
#include "http/server/wire.h"
#include "spate/http/compression.h"
#include "spate/http/fields.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Bytes of a body. A shorter one fits into one packet anyway.
inline constexpr std::uint64_t kLeastCompressed = 1024;
// Compressing a longer body at once would block the loop for too long.
inline constexpr std::uint64_t kMostCompressed = 8 * 1024 * 1024;

enum class CodingChoice : std::uint8_t {
  unsuitable,  // Never compressed, so Vary is not needed.
  refused,     // Not compressed for this client, although it would be for others.
  wanted,
};
// Decides about a response that may have a body.
CodingChoice choose_coding(const FieldsView& request, const ServerResponseHead& response);

enum class IsCoded : std::uint8_t { no, yes };
// Writes the fields of a response that is, or for another client would be, compressed. False when
// memory runs out.
bool describe_coding(const ServerResponseHead& response, IsCoded is_coded, Fields& target);

// The compressors of a server. Each takes 260 KiB: their number in use is limited, and few are
// kept.
class Compressors {
 public:
  explicit Compressors(int level) : level_(level) {}

  // Returns nullptr if too many are in use, or when memory runs out.
  std::unique_ptr<Compressor> take();
  void give_back(std::unique_ptr<Compressor> compressor);
  // Compresses a whole body. False as above.
  bool compress(Bytes bytes, Buffer& target);

 private:
  static constexpr std::size_t kMostInUse = 64;
  static constexpr std::size_t kMostKept = 2;

  int level_;
  std::size_t in_use_ = 0;
  std::vector<std::unique_ptr<Compressor>> kept_;
};

}  // namespace spate::http
