// Compression of bodies: gzip and deflate, piece by piece, from Bytes to a Buffer.
//
// A Compressor takes about 260 KiB, a Decompressor up to 40 KiB: keep them for the next body, which
// reset() begins. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Content codings (RFC 9110 §8.4.1).
enum class Coding : std::uint8_t {
  gzip,
  deflate,  // The format of RFC 1950. The raw format without header and checksum, which some
            // servers send, is also decompressed.
};
SPATE_EXPORT std::string_view name_of(Coding coding);
// Accepts "gzip", "x-gzip" and "deflate" in any case.
SPATE_EXPORT std::optional<Coding> coding_of(std::string_view name);

class SPATE_EXPORT Compressor {
 public:
  // Makes a Compressor. Levels are 1 (fast) to 9 (small). Errors: ENOMEM.
  static Result<Compressor> make(Coding coding, int level = 6);

  // Compresses bytes, and appends completed output to `target`; the rest is kept until flush() or
  // end(). False when memory runs out: the content of `target` is then useless, and only reset()
  // may follow.
  bool write(Bytes bytes, Buffer& target);
  // Appends the output that is kept, so that the receiver can read all that was written. Costs a
  // few bytes: for events, not for each piece of a file.
  bool flush(Buffer& target);
  // Appends the end of the body. Then only reset() may follow.
  bool end(Buffer& target);
  // Begins another body.
  void reset();

 private:
  struct Stream;
  struct Close {
    void operator()(Stream* stream) const;
  };

  explicit Compressor(std::unique_ptr<Stream, Close> stream) : stream_(std::move(stream)) {}
  bool run(Bytes bytes, Buffer& target, int flush);

  std::unique_ptr<Stream, Close> stream_;
  bool has_ended_ = false;
};

class SPATE_EXPORT Decompressor {
 public:
  enum class State : std::uint8_t {
    unfinished,  // All input is used; more is needed, unless is_done().
    full,        // `most` was reached. Call again, even without further input.
    broken,      // Invalid: see error(). Stays so until reset().
  };

  // Makes a Decompressor. `limit` is the most bytes of a decompressed body; it is enforced while
  // decompressing, since a few bytes can expand a thousandfold. Errors: ENOMEM.
  static Result<Decompressor> make(Coding coding, std::uint64_t limit);

  // Removes bytes from the front of `bytes`, and appends their decompressed form to `target`, at
  // most `most` bytes (at least 1) per call. Consecutive gzip members are one body (RFC 1952 §2.2);
  // anything else after the end is `broken`.
  State next(Bytes& bytes, Buffer& target, std::size_t most = SIZE_MAX);
  // True if the body may end here: it is complete, or has no byte.
  bool is_done() const { return place_ != Place::inside && !error_; }
  // Returns the error after `broken`: EBADMSG, EMSGSIZE above the limit, ENOMEM.
  std::error_code error() const { return error_; }
  // Begins another body, under the same limit.
  void reset();

 private:
  struct Stream;
  struct Close {
    void operator()(Stream* stream) const;
  };
  enum class Place : std::uint8_t { start, inside, end };

  Decompressor(std::unique_ptr<Stream, Close> stream, Coding coding, std::uint64_t limit)
      : stream_(std::move(stream)), limit_(limit), coding_(coding) {}
  State fail(std::errc error);
  bool begin_member(std::byte first);
  State run(Bytes& bytes, Buffer& target, std::size_t& most);

  std::unique_ptr<Stream, Close> stream_;
  std::uint64_t limit_;
  std::uint64_t made_ = 0;
  Coding coding_;
  Place place_ = Place::start;
  std::error_code error_;
};

}  // namespace spate::http
