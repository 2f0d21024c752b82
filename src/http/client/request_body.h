// RequestBody: what is sent behind the head of a request: bytes that are there from the beginning,
// and may be sent once more, or an upload, which comes piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "http/codec/outgoing.h"
#include "spate/http/fields.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"

namespace spate::http {

class RequestBody {
 public:
  // False when memory runs out.
  bool hold(Bytes copied, Buffer&& content);
  // `size` may be kUnknownSize.
  void expect_upload(std::uint64_t size);
  // There is none any more: of a redirect.
  void drop();

  Content content() const { return content_; }
  std::uint64_t size() const { return size_; }

  // ---- an upload

  bool takes(std::uint64_t more) const;
  bool append(Bytes bytes);
  void append(Buffer&& buffer);
  // False if it does not have its size.
  bool end(Fields trailers);
  bool has_ended() const { return has_ended_; }
  std::size_t waiting() const { return is_upload_ ? rest_.size() : 0; }

  // ---- sending

  // The whole can be sent, from the beginning: of an upload only if nothing has left yet.
  bool may_begin() const { return !is_upload_ || !has_begun_; }
  void begin();
  // What the stream takes until it is full. False if it takes nothing any more.
  bool send(Stream& stream);
  bool is_sent() const;

  // ---- or by pieces

  // So many bytes are there to be sent.
  std::uint64_t ready() const { return is_upload_ ? rest_.size() : size_ - sent_; }
  // Behind so many of them nothing comes.
  bool is_last(std::uint64_t size) const;
  const Fields& trailers() const { return trailers_; }
  void take(std::span<std::byte> target);
  // False when memory runs out.
  bool take(std::size_t size, Buffer& target);

 private:
  bool send_held(Stream& stream);
  bool send_upload(Stream& stream);
  bool send_rest(Stream& stream);
  bool send_end(Stream& stream);

  Content content_ = Content::none;
  bool is_upload_ = false;
  bool has_begun_ = false;
  bool has_ended_ = false;  // An upload, by the user.
  bool is_end_sent_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t taken_ = 0;  // Of an upload.
  std::uint64_t sent_ = 0;   // By pieces, of one that is no upload.
  Buffer rest_;              // Of an upload: what waits; else all of the body.
  Fields trailers_;          // Of an upload without a size.
  Buffer::Pieces at_;        // Where to go on in it,
  std::size_t offset_ = 0;   // and behind how many bytes.
};

}  // namespace spate::http
