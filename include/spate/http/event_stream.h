// Server-sent events (text/event-stream, HTML standard): formatting for servers, parsing for
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

// An event that a server sends. The data line is written even if it is empty, because clients
// ignore an event without one.
struct OutgoingEvent {
  std::string_view data = {};               // Any number of lines, ended by LF, CR or CRLF.
  std::string_view event = {};              // Its type. Empty: "message".
  std::optional<std::string_view> id = {};  // Empty: resets the client's last id.
  std::optional<std::chrono::milliseconds> retry =
      {};  // How long clients wait before they reconnect.
};

// Appends an event. All line ends in the data become LF. Returns false, and appends nothing, if
// memory runs out, if the type or the id has CR or LF, or if the id has NUL.
SPATE_EXPORT bool append_event(const OutgoingEvent& event, Buffer& target);
// Appends a comment, which clients ignore. Sending an empty one now and then keeps a connection
// alive.
SPATE_EXPORT bool append_event_comment(std::string_view text, Buffer& target);

// Parses events in pieces of any size, and keeps at most one event and one line.
//
//   while (decoder.next(bytes) == EventDecoder::State::event) use(decoder.data());
class SPATE_EXPORT EventDecoder {
 public:
  enum class State : std::uint8_t {
    unfinished,  // All input is used; more is needed.
    event,       // An event is complete.
    broken,      // The event exceeds the limit. Stays so until reset().
  };

  // `limit`: bytes of an event's data, and of a line.
  explicit EventDecoder(std::size_t limit = 1024 * 1024) : limit_(limit) {}

  // Removes bytes from the front of `bytes`, up to the end of an event. An event is not reported if
  // the stream ends without the empty line after it.
  State next(Bytes& bytes);

  // Return the last event; valid until next(). Invalid UTF-8 is not changed.
  std::string_view data() const { return data_; }
  std::string_view type() const { return type_.empty() ? std::string_view("message") : type_; }
  // Returns the last id that was received, with this event or before: the value of Last-Event-ID
  // for a reconnection.
  std::string_view last_id() const { return last_id_; }
  // Returns the last reconnection time that was received.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

  // Begins another stream. The last id and the reconnection time stay.
  void reset();

 private:
  bool skip_byte(char c);
  bool take_line();
  void take_field(std::string_view name, std::string_view value);
  bool end_event();
  void forget_event();

  std::size_t limit_;
  std::size_t marked_ =
      0;  // Bytes of the byte order mark that matched; its size: no longer searched.
  bool after_return_ = false;
  bool has_data_ = false;
  bool is_shown_ = false;  // The event was returned; the next call discards it.
  bool is_broken_ = false;
  std::string line_;
  std::string data_;
  std::string type_;
  std::string id_;  // The id of the next event.
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace spate::http
