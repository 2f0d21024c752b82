#include "http/client/request_body.h"

#include <algorithm>
#include <utility>

#include "http/codec/chunked.h"
#include "spate/http/call.h"

namespace spate::http {

namespace {

// The portion of a long body that is written at a time: bytes that the kernel does not take are
// copied.
constexpr std::size_t kPortion = 64 * 1024;

}  // namespace

bool RequestBody::hold(Bytes copied, Buffer&& content) {
  rest_ = std::move(content);
  if (!rest_.append(copied)) return false;
  size_ = rest_.size();
  content_ = size_ == 0 ? Content::none : Content::sized;
  return true;
}

void RequestBody::expect_upload(std::uint64_t size) {
  is_upload_ = true;
  size_ = size;
  content_ = size == kUnknownSize ? Content::unsized : Content::sized;
}

void RequestBody::drop() { *this = RequestBody(); }

// ---- an upload

bool RequestBody::takes(std::uint64_t more) const {
  return is_upload_ && !has_ended_ && more <= size_ - taken_;
}

bool RequestBody::append(Bytes bytes) {
  if (!rest_.append(bytes)) return false;
  taken_ += bytes.size();
  return true;
}

void RequestBody::append(Buffer&& buffer) {
  taken_ += buffer.size();
  rest_.append(std::move(buffer));
}

bool RequestBody::end(Fields trailers) {
  has_ended_ = true;
  may_send_end_ = may_be_trailers(trailers) && (content_ == Content::unsized || taken_ == size_);
  if (content_ == Content::unsized) trailers_ = std::move(trailers);
  return may_send_end_;
}

// ---- sending

void RequestBody::begin() {
  at_ = rest_.pieces();
  offset_ = 0;
  sent_ = 0;
}

bool RequestBody::send(Stream& stream) {
  return is_upload_ ? send_upload(stream) : send_held(stream);
}

bool RequestBody::send_held(Stream& stream) {
  while (at_ != Buffer::Pieces() && !stream.is_full()) {
    const Bytes left = (*at_).subspan(offset_);
    const Bytes portion = left.first(std::min(left.size(), kPortion));
    if (!stream.write(portion)) return false;
    offset_ += portion.size();
    passed_ += portion.size();
    if (portion.size() < left.size()) continue;
    ++at_;
    offset_ = 0;
  }
  return true;
}

bool RequestBody::send_upload(Stream& stream) {
  if (!rest_.empty() && !stream.is_full() && !send_rest(stream)) return false;
  const bool is_at_end = content_ == Content::unsized && may_send_end_ && rest_.empty();
  return !is_at_end || is_end_sent_ || send_end(stream);
}

bool RequestBody::send_end(Stream& stream) {
  has_begun_ = is_end_sent_ = true;
  if (trailers_.empty()) return stream.write(kLastChunk);
  const Bytes pieces[] = {bytes_of(kLastChunkHeader), bytes_of(trailers_.lines()),
                          bytes_of(kChunkEnd)};
  return stream.write(pieces);
}

bool RequestBody::send_rest(Stream& stream) {
  has_begun_ = true;
  passed_ += rest_.size();
  if (content_ == Content::sized) return stream.write(std::move(rest_));
  const ChunkHeader header(rest_.size());
  return stream.write(header.text()) && stream.write(std::move(rest_)) && stream.write(kChunkEnd);
}

bool RequestBody::is_sent() const {
  if (!is_upload_) return at_ == Buffer::Pieces();
  return content_ == Content::sized ? taken_ == size_ && rest_.empty() : is_end_sent_;
}

// ---- in pieces

bool RequestBody::is_last(std::uint64_t size) const {
  if (size < ready()) return false;
  if (!is_upload_) return true;
  return content_ == Content::sized ? taken_ == size_ : may_send_end_;
}

void RequestBody::take(std::span<std::byte> target) {
  has_begun_ = true;
  passed_ += target.size();
  if (is_upload_) {
    rest_.read(target);
  } else {
    rest_.copy(target, static_cast<std::size_t>(sent_));
    sent_ += target.size();
  }
}

bool RequestBody::take(std::size_t size, Buffer& target) {
  has_begun_ = true;
  passed_ += size;
  if (is_upload_) return target.append(rest_, size);
  if (!target.append_shared(rest_, static_cast<std::size_t>(sent_), size)) return false;
  sent_ += size;
  return true;
}

}  // namespace spate::http
