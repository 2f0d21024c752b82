// IncomingBody: the body of a request, as it arrives: whether it was asked for, how much is still
// to come, what of it is refused, and whether it arrives too slowly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "http/codec/chunked.h"
#include "http/codec/framing.h"
#include "http/codec/head.h"
#include "http/codec/http2_trailers.h"
#include "http/codec/refusal.h"
#include "spate/http/fields.h"
#include "spate/net/bytes.h"
#include "spate/time.h"

namespace spate::http {

class IncomingBody {
 public:
  static constexpr Refusal kTooLong = {Status::content_too_large, "the body is too long"};
  static constexpr Refusal kTooSlow = {Status::request_timeout, "the request came too slowly"};

  // Called when the header section is complete. The body may have `most` bytes.
  void open(const Framing& framing, std::uint64_t most, Nanos now);
  void clear();

  // ---- what the header section declared

  bool exists() const { return framing_.body != BodyKind::none; }
  bool is_chunked() const { return framing_.body == BodyKind::chunked; }
  // Returns Content-Length, or 0.
  std::uint64_t declared_size() const { return framing_.size; }
  bool asks_upgrade() const { return framing_.asks_upgrade; }
  bool keeps_alive() const { return framing_.keeps_alive; }

  // ---- reading it

  // Asks for the body. The time of a pause does not count for the rate.
  void start(Nanos now);
  // Lets end() report the end of an absent body, too.
  void expect_end() {
    if (stage_ == Stage::none) stage_ = Stage::waiting;
  }
  // Returns false if it is paused, or discarded: it would never be read to its end.
  bool pause();
  // Returns false if it is not paused.
  bool resume(Nanos now);
  // Undoes start(): its reader left.
  void abandon() {
    if (stage_ == Stage::reading) stage_ = Stage::waiting;
  }
  // Makes the wire read the rest, which no reader gets.
  void discard(Nanos now);
  // Returns false if the body was discarded: its end is not reported.
  bool end() { return std::exchange(stage_, Stage::ended) != Stage::discarded; }

  bool is_started() const { return stage_ == Stage::reading; }
  bool is_waiting() const { return stage_ == Stage::waiting; }
  bool is_discarded() const { return stage_ == Stage::discarded; }
  bool is_paused() const { return is_paused_; }
  // Returns whether its reader accepts more of it.
  bool is_reading() const { return is_started() && !is_paused_; }
  // Returns whether more of it is used: by its reader, or to be discarded.
  bool is_flowing() const { return is_reading() || is_discarded(); }
  // Returns whether the request has none, or its end was reported.
  bool is_over() const { return stage_ == Stage::none || stage_ == Stage::ended; }

  // Returns true once, if the client waits for 100 (Continue).
  bool invite();

  // ---- what arrives

  // Returns the part of `bytes` that belongs to a body which is not chunked.
  Bytes split(Bytes bytes);
  // Decodes a chunked body.
  ChunkedDecoder::Step decode(Bytes bytes);
  // Returns whether all bytes of a body that is not chunked arrived.
  bool is_received() const { return !is_chunked() && left_ == 0; }
  // HTTP/2: adds a trailer. False if they are too long.
  bool add_trailer(Http2TrailerSection& section, std::string_view name, std::string_view value,
                   const HeadLimits& limits) {
    return section.take(name, value, limits, trailers_);
  }
  const Fields& trailers() const { return trailers_; }
  // Counts bytes that arrived. False if the body is too long.
  bool count(std::size_t size, Nanos now) {
    received_ += size;
    last_arrival_ = now;
    return received_ <= most_;
  }
  std::uint64_t received() const { return received_; }

  // ---- its limits

  // Refuses more than `most` bytes. False if the header section declared more.
  bool limit(std::uint64_t most);
  // Returns whether the bytes that are still to come are known to be more than `most`.
  bool has_more_than(std::uint64_t most) const {
    return framing_.size > most && framing_.size - received_ > most;
  }
  // Returns whether the rest is known to be short enough to be discarded, so that the connection
  // can be used again.
  bool is_rest_short() const;
  // Returns whether it arrives more slowly than `min_rate` bytes per second, or not at all for
  // `timeout`.
  bool is_slow(Nanos timeout, std::uint64_t min_rate, Nanos now) const;

 private:
  enum class Stage : std::uint8_t {
    none,       // The request has no body.
    waiting,    // Not asked for yet.
    reading,    // Asked for.
    discarded,  // Not asked for, and the response has ended.
    ended,
  };

  void measure(Nanos now);
  bool awaits_invitation() const {
    return framing_.expects_continue && !was_invited_ && received_ == 0;
  }

  Framing framing_;
  ChunkedDecoder chunks_;  // For a chunked body.
  Fields trailers_;
  std::uint64_t left_ = 0;  // For a sized body: bytes that are still to arrive.
  std::uint64_t received_ = 0;
  std::uint64_t most_ = UINT64_MAX;
  // Loop times.
  Nanos reading_since_{0};  // The begin of reading without a pause.
  Nanos last_arrival_{0};
  std::uint64_t received_before_ = 0;  // Value of received_ at reading_since_.
  Stage stage_ = Stage::none;
  bool is_paused_ = false;
  bool was_invited_ = false;
};

}  // namespace spate::http
