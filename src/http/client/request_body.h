// RequestBody: the body of a request: bytes that are complete from the beginning, and can be sent
// again, or an upload, which arrives in pieces.
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
  // Stores a complete body. False when memory runs out.
  bool hold(Bytes copied, Buffer&& content);
  // `size` may be kUnknownSize.
  void expect_upload(std::uint64_t size);
  // Removes the body, for a redirect.
  void drop();

  Content content() const { return content_; }
  std::uint64_t size() const { return size_; }

  // ---- an upload

  bool takes(std::uint64_t more) const;
  // Adds bytes that takes() allows. False when memory runs out.
  bool append(Bytes bytes);
  void append(Buffer&& buffer);
  // Ends the upload. False if its size is wrong, or if the trailers may not be sent.
  bool end(Fields trailers);
  std::size_t waiting() const { return is_upload_ ? rest_.size() : 0; }

  // ---- sending

  // True if the body can be sent from the beginning: an upload only if nothing was sent yet.
  bool may_begin() const { return !is_upload_ || !has_begun_; }
  void begin();
  // Sends until the stream is full. False if the stream accepts nothing any more.
  bool send(Stream& stream);
  bool is_sent() const;
  // Returns how many bytes were passed on, in all attempts.
  std::uint64_t passed() const { return passed_; }

  // ---- or in pieces

  // Returns how many bytes can be sent now.
  std::uint64_t ready() const { return is_upload_ ? rest_.size() : size_ - sent_; }
  // Returns whether the body ends after `size` more bytes.
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
  bool has_ended_ = false;     // The user has ended the upload,
  bool may_send_end_ = false;  // and its size and trailers are valid.
  bool is_end_sent_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t taken_ = 0;  // Bytes of the upload.
  std::uint64_t sent_ = 0;   // By pieces, except of an upload.
  std::uint64_t passed_ = 0;
  Buffer rest_;             // The queue of an upload, otherwise the whole body.
  Fields trailers_;         // For an upload without a size.
  Buffer::Pieces at_;       // The next position in rest_: a piece,
  std::size_t offset_ = 0;  // and the offset in it.
};

}  // namespace spate::http
