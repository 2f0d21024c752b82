// EventSource: a client of server-sent events (HTML standard, server-sent events) that reconnects
// and continues after the last event.
//
//   struct Prices : EventSourceHandler {
//     void on_event(const ReceivedEvent& event) override { show(event.data); }
//     void on_closed(std::error_code) override {}
//   };
//   EventSource source = EventSource::connect(client, "https://example.org/prices", prices);
//
// It reconnects when the connection fails or ends, and after the statuses 429, 502, 503 and 504.
// Each request has Last-Event-ID, the id of the last event: the server can continue there. It stops
// for good, with on_closed(), when the server responds with 204, with any other status, or with a
// content type other than text/event-stream.
//
// Ownership: a handle; moving it moves the connection. Destroying it closes; no callback follows.
// The Client and the handler must outlive it.
// Threads: the loop's thread only.
// Callbacks: called by the loop, never from inside a function of the EventSource. Inside them
// everything is allowed, destroying the EventSource, the handler and the Client included; with the
// Client, destroy the EventSource as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/export.h"
#include "spate/http/client.h"
#include "spate/http/fields.h"
#include "spate/http/status.h"
#include "spate/time.h"

namespace spate::http {

class EventSourceState;

// Valid until the callback returns.
struct ReceivedEvent {
  std::string_view type;  // "message" if the server has sent none.
  std::string_view data;
  std::string_view last_id;  // The last id that was received, with this event or before.
};

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT EventSourceHandler {
 public:
  // Called for each connection when the server's response is an event stream.
  virtual void on_open() {}
  virtual void on_event(const ReceivedEvent& event) = 0;
  // Called when a connection or an attempt has failed. EventSource::retry_in() is the time to the
  // next attempt. `error` is Error::ended if the stream ended, HttpError::not_event_stream after a
  // temporary status, and otherwise that of CallHandler::on_closed().
  virtual void on_lost(std::error_code /*error*/) {}
  // Called last, at most once. No error: the server responded with 204.
  // HttpError::not_event_stream: it responded with something else that is no event stream.
  // EMSGSIZE: an event exceeds `max_event`. Otherwise the error of the last attempt: after
  // `max_failures`, or an error that no other attempt would avoid, such as HttpError::invalid_url.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~EventSourceHandler() = default;
};

struct EventSourceOptions {
  Fields fields{};  // Further fields of each request, such as Authorization.
  // As in CallOptions.
  std::optional<Credentials> credentials{};
  std::optional<Proxy> proxy{};
  Address address{};

  std::string last_id{};  // Sent with the first request: continues after an earlier connection.
  // The reconnection time, until the server sends another (`retry:`); that is used up to
  // `max_retry`. The delay is random, between this time and twice of it. It doubles with each
  // consecutive failed attempt, up to `max_delay` if that is longer.
  Nanos retry{3'000'000'000};
  Nanos max_retry{3'600'000'000'000};
  Nanos max_delay{60'000'000'000};
  std::uint32_t max_failures = 0;  // Stops after so many consecutive failed attempts; 0: never.

  // From the request to the header section of the response. Zero is none.
  Nanos response_timeout{30'000'000'000};
  // Reconnects when nothing has arrived for this time. Set it to a multiple of the interval in
  // which the server sends comments. Zero is none: a dead connection is then not noticed.
  Nanos idle_timeout{0};
  std::size_t max_event = 1024 * 1024;  // Bytes of an event's data, and of a line.
};

class SPATE_EXPORT EventSource {
 public:
  // Behaves as a closed EventSource.
  EventSource() = default;
  EventSource(EventSource&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  EventSource& operator=(EventSource&& other) noexcept {
    EventSource moved(std::move(other));
    std::swap(state_, moved.state_);
    return *this;
  }
  ~EventSource() {
    if (state_ != nullptr) leave();
  }

  // Connects, and stays connected. All errors are reported to the handler.
  [[nodiscard("destroying the EventSource closes it")]]
  static EventSource connect(Client& client, std::string_view url, EventSourceHandler& handler,
                             EventSourceOptions options = {});

  // Returns true between on_open() and on_lost() or on_closed().
  bool is_open() const;
  // Returns the time to the next attempt; zero unless waiting.
  Nanos retry_in() const;
  // Returns the number of consecutive failed attempts.
  std::uint32_t failures() const;
  // Returns the status of the last response; nullopt if the last attempt had none.
  std::optional<Status> status() const;
  // Returns the id for the next request. Valid until the next callback.
  std::string_view last_id() const;

  // While paused, nothing is read. Events that have arrived are still reported, at most those of
  // one piece of the body.
  void pause();
  void resume();
  // Closes the connection if there is one, and connects at once. Does nothing after on_closed().
  void reconnect();

 private:
  explicit EventSource(EventSourceState* state) : state_(state) {}
  void leave();

  EventSourceState* state_ = nullptr;
};

}  // namespace spate::http
