#include "http2/frame_writer.h"

#include <algorithm>
#include <cstring>

namespace spate::http {

char* FrameWriter::put(FrameType type, std::uint8_t flags, std::int32_t stream,
                       std::uint32_t size) {
  if (is_broken_ || !queued_.reserve(queued_.size() + kFrameHead + size)) {
    is_broken_ = true;
    return nullptr;
  }
  char* const payload = write_frame_head(
      queued_.end(), {.size = size, .type = type, .flags = flags, .stream = stream});
  queued_.grow_reserved(kFrameHead + size);
  ++count_;
  return payload;
}

void FrameWriter::preface() {
  if (!queued_.reserve(kHttp2Preface.size())) return void(is_broken_ = true);
  std::ranges::copy(kHttp2Preface, queued_.end());
  queued_.grow_reserved(kHttp2Preface.size());
}

void FrameWriter::settings(std::initializer_list<std::pair<Setting, std::uint32_t>> settings) {
  constexpr std::uint32_t kEntry = 6;
  char* at = put(FrameType::settings, 0, 0, kEntry * static_cast<std::uint32_t>(settings.size()));
  if (at == nullptr) return;
  for (const auto& [setting, value] : settings)
    at = write_number(write_number(at, static_cast<std::uint32_t>(setting), 2), value, 4);
}

void FrameWriter::ping(std::string_view payload, std::uint8_t flags) {
  char* const at = put(FrameType::ping, flags, 0, static_cast<std::uint32_t>(payload.size()));
  if (at != nullptr) std::ranges::copy(payload, at);
}

void FrameWriter::goaway(std::int32_t last, std::uint32_t code) {
  char* const at = put(FrameType::goaway, 0, 0, 8);
  if (at != nullptr) write_number(write_number(at, static_cast<std::uint32_t>(last), 4), code, 4);
}

void FrameWriter::rst_stream(std::int32_t stream, std::uint32_t code) {
  char* const at = put(FrameType::rst_stream, 0, stream, 4);
  if (at != nullptr) write_number(at, code, 4);
}

void FrameWriter::window_update(std::int32_t stream, std::uint32_t increment) {
  char* const at = put(FrameType::window_update, 0, stream, 4);
  if (at != nullptr) write_number(at, increment, 4);
}

void FrameWriter::headers(std::int32_t stream, std::span<const Http2Field> fields, Http2End end) {
  const std::size_t begin = queued_.size();
  if (put(FrameType::headers, 0, stream, 0) == nullptr) return;
  is_broken_ = !encoder_.encode(fields, queued_) || !split(begin, stream, end);
}

// Writes the head of the HEADERS frame at `begin`, whose payload is the rest of the queue, and
// moves the rest behind the heads of CONTINUATION frames.
bool FrameWriter::split(std::size_t begin, std::int32_t stream, Http2End end) {
  const std::uint8_t end_flag = end == Http2End::yes ? kEndStream : 0;
  const std::size_t size = queued_.size() - begin - kFrameHead;
  const std::size_t more = size == 0 ? 0 : (size - 1) / kMostPayload;  // CONTINUATION frames.
  if (!queued_.reserve(queued_.size() + more * kFrameHead)) return false;
  char* const payload = queued_.begin() + begin + kFrameHead;
  for (std::size_t i = more;; --i) {
    const std::size_t length = std::min(size - i * kMostPayload, kMostPayload);
    char* const place = payload + i * (kMostPayload + kFrameHead);
    if (i > 0) std::memmove(place, payload + i * kMostPayload, length);
    const std::uint8_t flags =
        static_cast<std::uint8_t>((i == 0 ? end_flag : 0) | (i == more ? kEndHeaders : 0));
    write_frame_head(place - kFrameHead,
                     {.size = static_cast<std::uint32_t>(length),
                      .type = i == 0 ? FrameType::headers : FrameType::continuation,
                      .flags = flags,
                      .stream = stream});
    if (i == 0) break;
  }
  queued_.grow_reserved(more * kFrameHead);
  count_ += more;
  return true;
}

}  // namespace spate::http
