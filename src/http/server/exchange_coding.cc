// ExchangeState's compressed responses.
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/exchange_pool.h"
#include "http/server/exchange_state.h"
#include "sys/descriptor.h"

namespace spate::http {

CodingChoice ExchangeState::choose_coding(const ServerResponseHead& response) const {
  const bool has_body = !is_informational(response.status) &&
                        response.status != Status::no_content &&
                        response.status != Status::not_modified;
  if (compression == Compression::none || !has_body) return CodingChoice::unsuitable;
  return http::choose_coding(view().fields, response);
}

// Sends the compressed body only if it is shorter.
bool ExchangeState::respond_as(CodingChoice choice, ServerResponseHead response, Bytes content) {
  Buffer coded;
  Bytes shorter;
  if (choice == CodingChoice::wanted && pool_.compressors().compress(content, coded) &&
      coded.size() < content.size())
    shorter = coded.flat(coded.size());
  Fields fields;
  if (!describe_coding(response, shorter.empty() ? IsCoded::no : IsCoded::yes, fields))
    return false;
  const Bytes sent = shorter.empty() ? content : shorter;
  response.fields = &fields;
  response.size = sent.size();
  return respond_plainly(response, sent);
}

// A compressed response is chunked, since its size is unknown before its end.
bool ExchangeState::begin_as(CodingChoice choice, ServerResponseHead response) {
  if (choice == CodingChoice::wanted) compressor_ = pool_.compressors().take();
  const bool is_coded = compressor_ != nullptr;
  Fields fields;
  const bool is_described =
      describe_coding(response, is_coded ? IsCoded::yes : IsCoded::no, fields);
  const auto size = response.size;
  response.fields = &fields;
  if (is_coded) response.size.reset();
  if (!is_described || !begin_plainly(response)) {
    drop_compressor();
    return false;
  }
  is_sized_ = size.has_value();
  left_ = size.value_or(0);
  return true;
}

void ExchangeState::return_compressor() {
  pool_.compressors().give_back(std::move(compressor_));
}

// After a failed write the rest could not be decompressed, so the exchange is ended.
bool ExchangeState::send_compressed(Buffer&& coded) {
  const std::size_t size = coded.size();
  if (size != 0 && !wire_->send(*this, std::move(coded))) {
    give_up();
    return false;
  }
  sent_ += size;
  return true;
}

bool ExchangeState::compress(Bytes bytes) {
  Buffer coded;
  if (compressor_->write(bytes, coded) && compressor_->flush(coded))
    return send_compressed(std::move(coded));
  give_up();
  return false;
}

// For HEAD nothing was written.
bool ExchangeState::end_compression() {
  Buffer coded;
  const bool is_sent =
      drops_body_ || (compressor_->end(coded) && send_compressed(std::move(coded)));
  drop_compressor();
  return is_sent;
}

// The descriptor stays the caller's. If reading fails after a part was sent, the response is cut
// short, and the connection reset.
std::error_code ExchangeState::compress_file(int file, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t begun_at = sent_;
  const std::error_code failure = compress_range(file, offset, size);
  if (failure && wire_ != nullptr && sent_ != begun_at) give_up();
  return failure;
}

std::error_code ExchangeState::compress_range(int file, std::uint64_t offset, std::uint64_t size) {
  std::array<std::byte, 16 * 1024> room;
  while (size != 0) {
    const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(size, room.size()));
    const long count = sys::read_at(file, room.data(), most, static_cast<std::int64_t>(offset));
    if (count < 0) return sys::error_code(count);
    if (count == 0) return system_error(ENODATA);
    if (!write(Bytes(room).first(static_cast<std::size_t>(count)))) return system_error(EPIPE);
    offset += static_cast<std::uint64_t>(count);
    size -= static_cast<std::uint64_t>(count);
  }
  return {};
}

}  // namespace spate::http
