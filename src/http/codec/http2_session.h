// Http2Session: the frames, the header compression and the flow control of one HTTP/2 connection
// (RFC 9113), without I/O: received bytes become events, and responses become bytes to send. It is
// implemented by spate::http2 (src/http2), so that programs without HTTP/2 do not contain it.
// The sessions of a server and of a client differ in which side begins streams.
//
// Http2Events must not destroy the session, nor call receive() or next_frame(); all other functions
// may be called within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "spate/export.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Error codes (RFC 9113 §7).
enum class Http2Code : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  flow_control_error = 3,
  stream_closed = 5,
  frame_size_error = 6,
  refused_stream = 7,
  cancel = 8,
  compression_error = 9,
  enhance_your_calm = 11,
};

// The owner's object for a stream.
class Http2Stream {
 protected:
  ~Http2Stream() = default;
};

struct Http2Field {
  std::string_view name;
  std::string_view value;
};

// The bytes of a body that can be sent now: some, the end, both, or neither yet.
struct Http2Piece {
  std::size_t size = 0;
  bool is_last = false;
  std::span<const Http2Field> trailers{};  // After the last bytes; valid until the next call.
};

enum class Http2Frame : std::uint8_t {
  useful,  // Part of a request or a body.
  idle,    // PING, SETTINGS, PRIORITY, an empty DATA, WINDOW_UPDATE, ...
  reset,   // RST_STREAM.
};

// The result of sending a frame.
enum class Http2Sent : std::uint8_t {
  yes,
  enough,  // It was sent; next_frame() must return before the next one.
  failed,  // It was not sent, and no other frame can be.
};

// Whether a message has ended (END_STREAM).
enum class Http2End : bool { no, yes };

// Whether a server accepts streams that become tunnels (extended CONNECT, RFC 8441).
enum class Http2Tunnels : std::uint8_t {
  unknown,  // Its settings have not arrived.
  refused,
  taken,
};

class Http2Events {
 public:
  // ---- during receive(). Returning false ends the input: receive() returns false.

  // Servers: a header section of a new stream begins. Returns the stream's object; nullptr when
  // memory runs out.
  virtual Http2Stream* on_stream(std::int32_t /*id*/) { return nullptr; }
  // Called for a field of a header section or of trailers. Malformed ones are never reported.
  virtual bool on_field(Http2Stream& stream, std::string_view name, std::string_view value) = 0;
  // Called when the header section is complete; for clients also after each 1xx, and the trailers.
  virtual bool on_head(Http2Stream& stream, Http2End end) = 0;
  virtual bool on_body(Http2Stream& stream, Bytes bytes) = 0;
  // Called for END_STREAM after the body or, for servers, after the trailers.
  virtual bool on_body_end(Http2Stream& stream) = 0;
  // Clients: the server accepts no further streams (GOAWAY). Streams that it did not process are
  // closed as refused.
  virtual void on_last_stream() {}
  // Clients: the server's settings have arrived.
  virtual void on_settings() {}
  // Called after each frame was processed.
  virtual bool on_frame(Http2Frame kind) = 0;

  // ---- during receive() and next_frame()

  // The peer violated the protocol: on a stream, which is reset, or on the connection.
  enum class Broken : std::uint8_t { stream, connection };
  virtual void on_violation(Broken broken) = 0;
  // Called last for a stream. `code` is the reason of a reset; refused_stream also for a request
  // that could not be sent.
  virtual void on_stream_closed(Http2Stream& stream, Http2Code code) = 0;

  // ---- during next_frame()

  virtual Http2Piece next_piece(Http2Stream& stream, std::size_t most) = 0;
  // Sends the header of a frame, and `size` bytes that next_piece() has offered.
  virtual Http2Sent send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) = 0;
  // Called when our side of the stream has ended.
  virtual void on_end_sent(Http2Stream& stream) = 0;

 protected:
  ~Http2Events() = default;
};

class SPATE_EXPORT Http2Session {
 public:
  virtual ~Http2Session() = default;

  // Processes received bytes. Returns false if they are not HTTP/2, are a flood, or were not
  // wanted, or when memory runs out: the connection must be closed. After a protocol error it
  // returns true, so that the last frames can report it to the peer; then is_over() is true.
  virtual bool receive(Bytes bytes) = 0;
  // Returns the next bytes to send, valid until the next call. Frames of bodies are sent by
  // send_piece() meanwhile. Empty: nothing to send now, or Http2Sent::enough.
  virtual Bytes next_frame() = 0;
  // True if nothing can be sent or received any more.
  virtual bool is_over() const = 0;

  // These return false when memory runs out, or if the stream is in the wrong state.

  virtual bool inform(std::int32_t id, std::span<const Http2Field> head) = 0;
  // Unless `end`, next_piece() is called for the body, and again after each wake(). request() is
  // for clients: it begins a stream, and returns its id; negative if none can be begun.
  virtual std::int32_t request(Http2Stream& stream, std::span<const Http2Field> head,
                               Http2End end) = 0;
  virtual bool respond(std::int32_t id, std::span<const Http2Field> head, Http2End end) = 0;
  virtual void wake(std::int32_t id) = 0;
  virtual bool reset(std::int32_t id, Http2Code code) = 0;
  // Reports `size` bytes of a body as used: updates the windows.
  virtual void credit(std::int32_t id, std::size_t size) = 0;

  // Sends a PING, which the peer must acknowledge at once.
  virtual bool ping() = 0;

  // Clients: returns the server's limit of concurrent streams.
  virtual std::uint32_t max_streams() const = 0;
  virtual Http2Tunnels tunnels() const = 0;

  // Begins a graceful end: sends a GOAWAY that announces it.
  virtual void announce_end() = 0;
  // Accepts no further streams; existing ones continue. The second step of a graceful end.
  virtual void refuse_streams(Http2Code code) = 0;
};

// The factory of sessions. Any thread.
class SPATE_EXPORT Http2Engine {
 public:
  virtual ~Http2Engine() = default;
  // Makes a server's session, which advertises `max_head`. nullptr when memory runs out.
  virtual std::unique_ptr<Http2Session> make_server(Http2Events& events,
                                                    std::size_t max_head) const = 0;
  // Makes a client's session, which accepts no pushed responses.
  virtual std::unique_ptr<Http2Session> make_client(Http2Events& events,
                                                    std::size_t max_head) const = 0;
  // Returns Http2Options::max_streams.
  virtual std::uint32_t max_streams() const = 0;
};

}  // namespace spate::http
