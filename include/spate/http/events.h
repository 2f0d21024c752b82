// EventStream: a response of server-sent events, as received by a browser's EventSource.
// EventChannel: publishes to many of them.
//
//   spate::http::EventChannel channel;
//   router.get("/events", [&](Exchange exchange) {
//     channel.add(EventStream::open(std::move(exchange)));
//   });
//   channel.publish({.data = "hello"});
//
// Heartbeats: when there is no event, comments are sent, which clients ignore. They are needed
// because a dead client is noticed only when sent data is not acknowledged, and because proxies
// close quiet connections.
// Slow clients: a client is closed when too many bytes are queued for it, or when it reads nothing
// for ServerOptions::idle_timeout. EventSource then reconnects, and its last id is in
// last_event_id().
//
// Ownership: an EventStream is a handle; destroying it ends the response. An EventChannel owns the
// streams that were added, and drops closed ones. Both may outlive the Server.
// Threads: the loop's thread only. On Workers, each worker needs its own channel; publish by
// Workers::post_to_all().
// Callbacks: on_closed, called by the loop and never from inside a call to the EventStream. Inside
// it everything is allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/function.h"
#include "spate/http/event_stream.h"
#include "spate/http/exchange.h"
#include "spate/http/fields.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

struct EventStreamOptions {
  Nanos heartbeat{15'000'000'000};   // A comment is sent after this time without an event; zero is
                                     // none.
  std::size_t max_queued = 1 << 20;  // Bytes that may be queued for a client.
  WhenFull when_full = WhenFull::close;  // With drop, the event is not sent to that client.
};

class SPATE_EXPORT EventStream {
 public:
  // The last call, once, with the reason. Not called if the stream was destroyed or ended by end().
  using OnClosed = Function<void(std::error_code error)>;

  // Makes a closed stream.
  EventStream();
  EventStream(EventStream&& other) noexcept;
  EventStream& operator=(EventStream&& other) noexcept;
  ~EventStream();

  // Begins the response. `fields` are sent in addition to Content-Type, Cache-Control and
  // X-Accel-Buffering. Returns a closed stream if the exchange is over or memory runs out, and for
  // a HEAD request, which gets its response.
  static EventStream open(Exchange exchange, const EventStreamOptions& options = {},
                          const Fields& fields = {});

  bool is_open() const;
  void set_on_closed(OnClosed on_closed);
  // Returns the id of the last event that the client received before it reconnected; empty if none.
  std::string_view last_event_id() const;

  // Sends an event. Returns false, and sends nothing, if the stream is closed, if the client reads
  // too slowly (it is then closed, or the event dropped), if the type or the id has a line break,
  // or when memory runs out.
  bool send(const OutgoingEvent& event);
  bool send(std::string_view data) { return send({.data = data}); }
  bool comment(std::string_view text);
  // Returns the number of bytes that are queued.
  std::size_t queued() const;
  // Ends the response. The client reconnects; 204 as the response to that request stops it.
  void end();

 private:
  friend class EventChannel;
  class State;
  explicit EventStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class SPATE_EXPORT EventChannel {
 public:
  EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;
  // Ends all streams.
  ~EventChannel();

  // Adds a stream. False if it is closed. Its on_closed is called after it was removed.
  bool add(EventStream stream);
  std::size_t size() const { return size_; }
  // Sends an event to all streams; it is formatted once. Returns the number of streams to which it
  // was sent.
  std::size_t publish(const OutgoingEvent& event);
  std::size_t publish(std::string_view data) { return publish({.data = data}); }

 private:
  friend class EventStream::State;
  EventStream::State* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::http
