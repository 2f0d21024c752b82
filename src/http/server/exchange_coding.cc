// ExchangeState's compressed responses. A file is compressed by the loop as it is read, and so are
// bytes that follow one.
#include <array>
#include <cerrno>
#include <new>
#include <span>
#include <utility>

#include "core/result.h"
#include "http/codec/system_error.h"
#include "http/server/exchange_pool.h"
#include "http/server/exchange_state.h"
#include "http/server/file_piece.h"
#include "http/server/uncoded.h"

namespace spate::http {

CodingChoice ExchangeState::choose_coding(const ServerResponseHead& response) const {
  const bool has_body = !is_informational(response.status) &&
                        response.status != Status::no_content &&
                        response.status != Status::not_modified;
  if (compression_ == Compression::none || !has_body) return CodingChoice::unsuitable;
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
  response_.expect(size);
  return true;
}

void ExchangeState::return_compressor() {
  pool_.compressors().give_back(std::move(compressor_));
  uncoded_.reset();
}

bool ExchangeState::compress(Bytes bytes, Buffer& coded) {
  return compressor_->write(bytes, coded) && compressor_->flush(coded);
}

bool ExchangeState::send_coded(Buffer&& coded) {
  const std::size_t size = coded.size();
  if (size != 0 && !wire_->send(*this, std::move(coded))) return false;
  response_.count_sent(size);
  return true;
}

// After a failed write the rest could not be decompressed, so the exchange is ended.
bool ExchangeState::write_compressed(Bytes bytes) {
  if (has_uncoded()) return queue_uncoded(bytes);
  Buffer coded;
  if (compress(bytes, coded) && send_coded(std::move(coded))) return true;
  give_up();
  return false;
}

// For HEAD nothing was written.
bool ExchangeState::end_compression() {
  Buffer coded;
  const bool is_sent =
      response_.drops_body() || (compressor_->end(coded) && send_coded(std::move(coded)));
  drop_compressor();
  return is_sent;
}

// ---- bytes behind files, and files

bool ExchangeState::has_uncoded() const { return uncoded_ != nullptr && !uncoded_->out.empty(); }

bool ExchangeState::queue_uncoded(Bytes bytes) {
  const bool has_room = uncoded_->total.in_memory + bytes.size() <= Uncoded::kLimits.max;
  if (!has_room || !uncoded_->out.append(bytes)) return give_up(), false;
  on_uncoded();
  return true;
}

std::error_code ExchangeState::queue_uncoded(int file, std::uint64_t offset, std::uint64_t size,
                                             ThreadPool& pool) {
  if (const std::error_code unfit = check_piece(file, offset, size)) return unfit;
  if (uncoded_ == nullptr) uncoded_.reset(new (std::nothrow) Uncoded);
  if (uncoded_ == nullptr || !uncoded_->out.append_file(file, offset, size, pool))
    return system_error(ENOMEM);
  on_uncoded();
  return {};
}

void ExchangeState::on_uncoded() {
  uncoded_->on_append();
  wire_->settle_later(*this);
}

void ExchangeState::on_loaded() { wire_->settle_later(*this); }

void ExchangeState::on_room() {
  if (uncoded_ == nullptr) return tell_drained();
  uncoded_->owes_drained = true;
  compress_queued();
}

void ExchangeState::tell_drained() {
  tell([](ExchangeHandler& handler) { handler.on_drained(); });
}

// One call compresses a bounded number of bytes, because compressing is slower than a network.
void ExchangeState::compress_queued() {
  constexpr int kPieces = 16;
  for (int i = 0; i < kPieces && has_uncoded() && !wire_->is_full(); ++i) {
    if (!compress_next()) return;
  }
  if (has_uncoded() && !wire_->is_full()) wire_->settle_later(*this);
  if (!has_uncoded() && response_.is_ending()) return end_compressed();
  if (uncoded_ != nullptr && uncoded_->owes_drained && !is_full()) {
    uncoded_->owes_drained = false;
    tell_drained();
  }
}

// Returns false if a thread reads the file, and after an error. The wire reports it if it cannot
// send.
bool ExchangeState::compress_next() {
  std::array<std::byte, 16 * 1024> room;
  Outbox& out = uncoded_->out;
  const long count = out.prepare(room.size(), loop(), bind<&ExchangeState::on_loaded>(this));
  if (count == -EAGAIN) return false;
  if (count < 0) return wire_->lose(*this, spate::error_of(count)), false;
  const auto piece = std::span(room).first(static_cast<std::size_t>(count));
  out.take(piece);
  uncoded_->on_take();
  Buffer coded;
  if (!compress(piece, coded)) return wire_->lose(*this, system_error(ENOMEM)), false;
  if (send_coded(std::move(coded))) return true;
  if (uncoded_ != nullptr) out.clear();
  return false;
}

// The caller's end() has returned, so a failure is reported to the handler.
bool ExchangeState::end_later(const Fields& behind) {
  if (!uncoded_->trailers.add_all(behind)) return false;
  response_.end_later();
  return true;
}

void ExchangeState::end_compressed() {
  const std::unique_ptr<Uncoded> ended = std::move(uncoded_);
  if (end_compression() && wire_->send_end(*this, ended->trailers)) return end_response();
  if (wire_ != nullptr) wire_->lose(*this, system_error(ENOMEM));
}

}  // namespace spate::http
