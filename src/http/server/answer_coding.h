// Compression of answers: which of them are, what their heads say then, and the compressors.
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

// Shorter ones are not worth it, and a packet in any case.
inline constexpr std::uint64_t kLeastCompressed = 1024;
// Longer ones would stop the loop for too long.
inline constexpr std::uint64_t kMostCompressed = 8 * 1024 * 1024;

enum class CodingChoice : std::uint8_t {
  unsuitable,  // The answer is as it is, for everybody.
  refused,     // It is as it is for this client.
  wanted,
};
// Of an answer that may have a body.
CodingChoice choose_coding(const FieldsView& request, const AnswerHead& answer);

enum class IsCoded : std::uint8_t { no, yes };
// The fields of an answer that might have been compressed. False when memory runs out.
bool describe_coding(const AnswerHead& answer, IsCoded is_coded, Fields& target);

// Those of a server. Each has 260 KiB: those in use are limited, and few are kept.
class Compressors {
 public:
  explicit Compressors(int level) : level_(level) {}

  // nullptr if enough are in use, or memory runs out.
  std::unique_ptr<Compressor> take();
  void give_back(std::unique_ptr<Compressor> compressor);
  // All of it. False as above.
  bool compress(Bytes bytes, Buffer& target);

 private:
  static constexpr std::size_t kMostInUse = 64;
  static constexpr std::size_t kMostKept = 2;

  int level_;
  std::size_t in_use_ = 0;
  std::vector<std::unique_ptr<Compressor>> kept_;
};

}  // namespace spate::http
