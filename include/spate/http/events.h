// EventStream: an answer that goes on: server-sent events, as a browser's EventSource receives
// them. EventChannel: many of them, to be told the same.
//
//   spate::http::EventChannel channel;
//   router.get("/events", [&](Exchange exchange) {
//     channel.add(EventStream::open(std::move(exchange)));
//   });
//   channel.publish({.data = "hello"});
//
// Comments, which clients do not show, are sent where nothing else is: a client that has gone
// without a word is noticed only when something sent to it is not acknowledged, and proxies give up
// quiet connections. A client that reads more slowly than it is told is closed when too much waits
// for it, or takes nothing for as long as ServerOptions::idle_timeout; it connects again by itself,
// and its last id is then in last_event_id().
//
// Ownership: an EventStream is a handle; destroying it ends the answer. An EventChannel owns those
// that were added, and drops those that have closed. Both may outlive the Server.
// Threads: the loop's thread only. On Workers, each has a channel of its own; publish by
// Workers::post_to_all().
// Callbacks: on_closed, called by the loop and never from inside a call to the EventStream. Inside
// it everything is allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/http/event_stream.h"
#include "spate/http/exchange.h"
#include "spate/http/fields.h"
#include "spate/net/bytes.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

struct EventStreamOptions {
  Nanos heartbeat{15'000'000'000};   // A comment after that long without an event; zero is none.
  std::size_t max_queued = 1 << 20;  // Bytes that may wait for a client.
  WhenFull when_full = WhenFull::close;  // Or drop: the event is not sent to it.
};

class SPATE_EXPORT EventStream {
 public:
  // The last call, once: why it has closed. Not if it was destroyed or ended by end().
  using OnClosed = std::move_only_function<void(std::error_code error)>;

  // A closed one.
  EventStream();
  EventStream(EventStream&& other) noexcept;
  EventStream& operator=(EventStream&& other) noexcept;
  ~EventStream();

  // Begins the answer; `fields` are those beside Content-Type, Cache-Control and
  // X-Accel-Buffering. Closed if the exchange is over or memory runs out, and of a HEAD, which is
  // answered.
  static EventStream open(Exchange exchange, const EventStreamOptions& options = {},
                          const Fields& fields = {});

  bool is_open() const;
  void set_on_closed(OnClosed on_closed);
  // What the client had seen when it connected again; empty if it says nothing.
  std::string_view last_event_id() const;

  // False, and nothing is sent: closed; dropped, or closed because of it, as it reads too slowly;
  // type or id have a line break; memory runs out.
  bool send(const OutgoingEvent& event);
  bool send(std::string_view data) { return send({.data = data}); }
  bool comment(std::string_view text);
  // Bytes that wait for it.
  std::size_t queued() const;
  // Ends the answer. Clients connect again, unless that is answered 204.
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
  // Ends them all.
  ~EventChannel();

  // False if it is closed. Its on_closed is called when it has left.
  bool add(EventStream stream);
  std::size_t size() const { return size_; }
  // The event is put into its form once, whatever their number. Returns to how many it was sent.
  std::size_t publish(const OutgoingEvent& event);
  std::size_t publish(std::string_view data) { return publish({.data = data}); }

 private:
  friend class EventStream::State;
  EventStream::State* first_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spate::http
