// OutgoingResponse: how far the response of an exchange is: its status, and how many bytes of its
// body were sent and still follow.
#pragma once

#include <cstdint>
#include <optional>

#include "http/codec/outgoing.h"
#include "spate/http/status.h"

namespace spate::http {

class OutgoingResponse {
 public:
  // Decides how the body follows the header section. Called before begin().
  void frame(const RequestSummary& request, Status status, std::optional<std::uint64_t> size) {
    framing_ = frame_outgoing(request, status, size);
  }
  // Valid after frame().
  const Outgoing& framing() const { return framing_; }
  void clear();

  // ---- its stages

  // Called when the header section was sent.
  void begin(Status status, std::optional<std::uint64_t> size);
  // Sets the size of the body before it is compressed.
  void expect(std::optional<std::uint64_t> size);
  // Called when the body is complete, and a part of it is still to be compressed.
  void end_later() { stage_ = Stage::ending; }
  void end() { stage_ = Stage::ended; }
  // Called when the wire has sent the response to an upgrade.
  void note_upgrade(Status status);

  bool has_begun() const { return stage_ != Stage::none; }
  // Returns whether its body may be written.
  bool is_writable() const { return stage_ == Stage::begun; }
  // Returns whether its body is complete.
  bool is_complete() const { return stage_ >= Stage::ending; }
  bool is_ending() const { return stage_ == Stage::ending; }
  bool has_ended() const { return stage_ == Stage::ended; }
  // Returns the status as it was sent; 499 if there was no response.
  Status status() const { return has_begun() ? status_ : kNoResponse; }

  // ---- its body

  // Returns whether the response has no body: one that is written is dropped.
  bool drops_body() const { return framing_.body == BodyKind::none; }
  // Returns whether `size` more bytes may be written.
  bool takes(std::uint64_t size) const { return is_writable() && (!is_sized_ || size <= left_); }
  void count_written(std::uint64_t size) {
    if (is_sized_) left_ -= size;
  }
  // Counts bytes as they are sent: compressed, if they are.
  void count_sent(std::uint64_t size) {
    if (!drops_body()) sent_ += size;
  }
  std::uint64_t sent() const { return sent_; }
  // Returns whether less was written than declared.
  bool is_short() const { return is_sized_ && left_ != 0 && !drops_body(); }

 private:
  enum class Stage : std::uint8_t { none, begun, ending, ended };

  static constexpr Status kNoResponse{499};

  Outgoing framing_;
  std::uint64_t left_ = 0;  // If is_sized_: bytes that are still to be written.
  std::uint64_t sent_ = 0;
  Status status_{};
  Stage stage_ = Stage::none;
  bool is_sized_ = false;
};

}  // namespace spate::http
