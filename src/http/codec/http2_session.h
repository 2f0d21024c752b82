// Http2Session: the frames, the header compression and the windows of one connection of HTTP/2
// (RFC 9113), without I/O and without a meaning: bytes go in and become events, answers go in and
// become bytes. Who implements it is another library (src/http2), so that this one needs no engine.
// A server's and a client's differ in who begins the streams.
//
// Http2Events must not destroy the session, nor call receive() or next_frame(); all else may be
// called within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "spate/export.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Of RFC 9113 §7.
enum class Http2Code : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  refused_stream = 7,
  cancel = 8,
  enhance_your_calm = 11,
};

// What stands for a stream among its owner's objects.
class Http2Stream {
 protected:
  ~Http2Stream() = default;
};

struct Http2Field {
  std::string_view name;
  std::string_view value;
};

// What of a body can be sent now: some bytes, the end, both, or neither yet.
struct Http2Piece {
  std::size_t size = 0;
  bool is_last = false;
  std::span<const Http2Field> trailers{};  // Behind the last; valid until the next call.
};

enum class Http2Frame : std::uint8_t {
  useful,  // Takes a request or a body on.
  idle,    // Does not: PING, SETTINGS, PRIORITY, an empty DATA, an update of a window, ...
  reset,   // RST_STREAM.
};

// What came of a frame that was to be sent.
enum class Http2Sent : std::uint8_t {
  yes,
  enough,  // It was sent, and next_frame() is to return before another one is.
  failed,  // It was not, and nothing can be any more.
};

// Whether a side of a stream is at its end.
enum class Http2End : bool { no, yes };

// Whether a server takes streams that become tunnels (extended CONNECT, RFC 8441).
enum class Http2Tunnels : std::uint8_t {
  unknown,  // It has not said anything yet.
  refused,
  taken,
};

class Http2Events {
 public:
  // ---- while bytes are taken in. False: no more of them are wanted; receive() returns false.

  // Of a server: a head begins, of a new stream, whose stand-in it returns (nullptr: out of
  // memory).
  virtual Http2Stream* on_stream(std::int32_t /*id*/) { return nullptr; }
  // A field of a head, or of trailers. What is malformed never comes here.
  virtual bool on_field(Http2Stream& stream, std::string_view name, std::string_view value) = 0;
  // The head is whole. Of a client, also each of 1xx before it, and the trailers.
  virtual bool on_head(Http2Stream& stream, Http2End end) = 0;
  virtual bool on_body(Http2Stream& stream, Bytes bytes) = 0;
  // Nothing more comes, behind the body or, of a server, its trailers.
  virtual bool on_body_end(Http2Stream& stream) = 0;
  // Of a client: the server takes no further streams. Those that it has not looked at are closed,
  // as refused.
  virtual void on_last_stream() {}
  // Of a client: the server's settings have come.
  virtual void on_settings() {}
  // Each frame, behind what it has brought.
  virtual bool on_frame(Http2Frame kind) = 0;

  // ---- also while bytes are made

  // The peer has broken a rule: of a stream, which is reset for it, or of the connection.
  enum class Broken : std::uint8_t { stream, connection };
  virtual void on_violation(Broken broken) = 0;
  // The last of this stream. `code`: why it was reset, if it was; refused_stream also of a request
  // that could not be sent.
  virtual void on_stream_closed(Http2Stream& stream, Http2Code code) = 0;

  // ---- while bytes are made

  virtual Http2Piece next_piece(Http2Stream& stream, std::size_t most) = 0;
  // Sends the head of a frame, and `size` bytes of what next_piece() has offered.
  virtual Http2Sent send_piece(Http2Stream& stream, Bytes frame_head, std::size_t size) = 0;
  // Our side of the stream is at its end.
  virtual void on_end_sent(Http2Stream& stream) = 0;

 protected:
  ~Http2Events() = default;
};

class SPATE_EXPORT Http2Session {
 public:
  virtual ~Http2Session() = default;

  // False: what came is not of HTTP/2, is a flood, or was not wanted; or memory has run out. The
  // connection is of no use any more. An error that a peer is told about is a true one: frames are
  // to be sent, and then is_over().
  virtual bool receive(Bytes bytes) = 0;
  // What is to be sent next, valid until the next call; the frames of bodies are sent meanwhile.
  // Empty: nothing at present, or they were enough.
  virtual Bytes next_frame() = 0;
  // Nothing is to be sent any more, or to be received.
  virtual bool is_over() const = 0;

  // These return false when memory runs out, or if the stream is not in a state for it.

  virtual bool inform(std::int32_t id, std::span<const Http2Field> head) = 0;
  // If that is not its end, next_piece() is asked for the body, and again after each wake().
  // Of a client: begins a stream, and returns its number; negative if none can be begun.
  virtual std::int32_t request(Http2Stream& stream, std::span<const Http2Field> head,
                               Http2End end) = 0;
  virtual bool answer(std::int32_t id, std::span<const Http2Field> head, Http2End end) = 0;
  virtual void wake(std::int32_t id) = 0;
  virtual bool reset(std::int32_t id, Http2Code code) = 0;
  // So many bytes of a body were used: the peer may send as many again.
  virtual void credit(std::int32_t id, std::size_t size) = 0;

  // Asks the peer to answer at once, whatever else it does.
  virtual bool ping() = 0;

  // Of a client: how many streams there may be at the same time.
  virtual std::uint32_t max_streams() const = 0;
  virtual Http2Tunnels tunnels() const = 0;

  // The first step of an end: the peer learns that it is near.
  virtual void announce_end() = 0;
  // The second: no further stream is taken; those that are there go on.
  virtual void refuse_streams(Http2Code code) = 0;
};

// What makes sessions. Any thread.
class SPATE_EXPORT Http2Engine {
 public:
  virtual ~Http2Engine() = default;
  // A server's; `max_head` is what it advertises. nullptr when memory runs out.
  virtual std::unique_ptr<Http2Session> make_server(Http2Events& events,
                                                    std::size_t max_head) const = 0;
  // The same of a client, which takes no pushed answers.
  virtual std::unique_ptr<Http2Session> make_client(Http2Events& events,
                                                    std::size_t max_head) const = 0;
};

}  // namespace spate::http
