// Compression of bodies: gzip and deflate, piece by piece, from Bytes to a Buffer.
//
// A Compressor holds about 260 KiB, a Decompressor up to 40 KiB: keep them for the next body, which
// reset() begins. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

// As Content-Encoding names them (RFC 9110 §8.4.1).
enum class Coding : std::uint8_t {
  gzip,
  deflate,  // In the format of RFC 1950; also read without its head and sum, as some servers send
            // it.
};
SPATE_EXPORT std::string_view name_of(Coding coding);
// "gzip", "x-gzip" or "deflate", whatever the case.
SPATE_EXPORT std::optional<Coding> coding_of(std::string_view name);

class SPATE_EXPORT Compressor {
 public:
  // 1 is fast, 9 is small. Errors: ENOMEM.
  static Result<Compressor> make(Coding coding, int level = 6);

  // Takes bytes, and appends to `target` what is ready; more of it waits for flush() or end().
  // False if memory ran out: what is in `target` is of no use, and only reset() may follow.
  bool write(Bytes bytes, Buffer& target);
  // Appends what is waiting, so that the other side can read all that was written. Costs a few
  // bytes: for events, not for each piece of a file.
  bool flush(Buffer& target);
  // Appends the rest. Then only reset() may follow.
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
    unfinished,  // All bytes are used; more are needed, unless is_done().
    full,        // `most` was reached. Call again, even if no bytes are left.
    broken,      // And remains so, up to reset(): error().
  };

  // `limit`: bytes of a body, decompressed. A few bytes can stand for a thousand times as many, so
  // it is watched while they come out. Errors: ENOMEM.
  static Result<Decompressor> make(Coding coding, std::uint64_t limit);

  // Removes bytes from the front of `bytes`, and appends what they stand for to `target`, at most
  // `most` bytes (at least 1) a call. Members of gzip that follow one another are one body (RFC
  // 1952 §2.2); anything else behind the end breaks it.
  State next(Bytes& bytes, Buffer& target, std::size_t most = SIZE_MAX);
  // The body may end here: it is whole, or nothing has come at all.
  bool is_done() const { return place_ != Place::inside && !error_; }
  // After `broken`: EBADMSG, EMSGSIZE above the limit, ENOMEM.
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
