// Server-sent events, text/event-stream, as the HTML standard has them: written by servers, read by
// clients. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

// The value of Content-Type.
inline constexpr std::string_view kEventStreamType = "text/event-stream";

// What a server sends. The data is written even if it is empty: without it there is no event.
struct OutgoingEvent {
  std::string_view data = {};               // Of any number of lines, ended by LF, CR or CRLF.
  std::string_view event = {};              // Its type. Empty: "message".
  std::optional<std::string_view> id = {};  // Empty: forget the last one.
  std::optional<std::chrono::milliseconds> retry =
      {};  // How long clients wait before they reconnect.
};

// Appends an event. All line ends of the data become LF for the client. False, and nothing is
// appended, if memory runs out, if a type or an id has CR or LF, or an id NUL.
SPATE_EXPORT bool append_event(const OutgoingEvent& event, Buffer& target);
// Appends a comment, which clients do not show: an empty one now and then keeps a connection alive.
SPATE_EXPORT bool append_event_comment(std::string_view text, Buffer& target);

// Reads events in pieces of any size, and keeps at most one event and one line.
//
//   while (decoder.next(bytes) == EventDecoder::State::event) use(decoder.data());
//
class SPATE_EXPORT EventDecoder {
 public:
  enum class State : std::uint8_t {
    unfinished,  // All bytes are used; more are needed.
    event,       // One is there.
    broken,      // It is longer than the limit. And remains so, up to reset().
  };

  // Bytes of an event's data and of a line.
  explicit EventDecoder(std::size_t limit = 1024 * 1024) : limit_(limit) {}

  // Removes bytes from the front of `bytes`, up to the end of an event. What is left at the end of
  // a stream without an empty line is no event.
  State next(Bytes& bytes);

  // Of the last event; valid until next(). Bytes that are no UTF-8 stay as they are.
  std::string_view data() const { return data_; }
  std::string_view type() const { return type_.empty() ? std::string_view("message") : type_; }
  // The last id that was sent, with this event or before: the value of Last-Event-ID when the
  // client connects again.
  std::string_view last_id() const { return last_id_; }
  // The last time to wait that was sent.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

  // Begins another stream: the last id and the time to wait stay.
  void reset();

 private:
  bool skip_byte(char c);
  bool take_line();
  void take_field(std::string_view name, std::string_view value);
  bool end_event();
  void forget_event();

  std::size_t limit_;
  std::size_t marked_ =
      0;  // Bytes of the byte order mark that were seen; all: no longer looked for.
  bool after_return_ = false;
  bool has_data_ = false;
  bool is_shown_ = false;  // The event was returned, and goes with the next call.
  bool is_broken_ = false;
  std::string line_;
  std::string data_;
  std::string type_;
  std::string id_;  // That of the next event.
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace spate::http
