// evhttp_connection: one connection of a server or a client, its requests in order, and how far the
// first of them is.
//
// Semantics: event2/http.h; probed on Debian's 2.1.12 with its security fixes: the order of
// callbacks, the enabled events, and the effects of each error.
//
// A server's connection always has one request, the one that is being read or answered; a client's
// has the queued ones, the first of which is being sent or answered. server.h, client.h and
// reply.cc handle the requests of each side; this room reads and writes.
//
// Threads: one, as in the original: that of the base. A program's own bufferevent may have a lock;
// evhttp has none.
//
// Lifetime: callbacks may free the connection. It is closed at once, and freed when the last Stay
// has ended; after every callback is_freed says whether to continue.
#pragma once

#include <sys/queue.h>
#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "compat/libevent/http/message.h"
#include "compat/libevent/timeval.h"

namespace spate::libevent {

TAILQ_HEAD(RequestQueue, evhttp_request);

enum class Progress : std::uint8_t { on, waits };

}  // namespace spate::libevent

struct evhttp_connection {
 public:
  enum class State : std::uint8_t {
    disconnected,
    connecting,
    idle,  // A client's connection without a request.
    first_line,
    headers,
    body,
    trailer,
    writing,
  };
  using Progress = spate::libevent::Progress;
  using WrittenCallback = void (*)(evhttp_connection* connection, void* argument);

  evhttp_request* request() const { return TAILQ_FIRST(&requests); }
  bool is_server() const { return server != nullptr; }
  bool is_connected() const { return state != State::disconnected && state != State::connecting; }

  // ---- reading

  // True from the first line of a message on.
  void begin_reading();
  // Processes the input.
  void advance();
  void advance_soon();
  // Reads only to notice the end; any input also ends the connection.
  void begin_idling();
  void read_in(State first);

  // ---- writing

  // Sends the output. `callback`, which may be null, is called from the loop when everything was
  // sent. Inside advance() sending begins when that ends (send_answer()).
  void write(WrittenCallback callback, void* argument);
  evbuffer* output() const { return bufferevent_get_output(bev); }
  evbuffer* input() const { return bufferevent_get_input(bev); }

  // ---- ending

  // The request cannot be completed.
  void fail(evhttp_request_error error);
  // Closes the socket, and calls the program's close callback if it was connected.
  void disconnect();
  void append(evhttp_request& request);
  void unlink(evhttp_request& request);
  void set_timeouts(const timeval& time);
  void close();
  void release_last();
  // For a client over filters, which must know when the socket below has sent its output. Returns
  // false when memory runs out.
  [[nodiscard]] bool watch_below();

  static void on_readable(bufferevent* bev, void* argument);
  static void on_written(bufferevent* bev, void* argument);
  static void on_event(bufferevent* bev, short what, void* argument);
  // For a client over filters: of the output of the socket below them.
  static void on_sent_below(evbuffer* output, const evbuffer_cb_info* info, void* argument);

  TAILQ_ENTRY(evhttp_connection) next;  // In the server's list.
  evhttp* server;                       // Null for a client.
  event_base* base;
  bufferevent* bev;
  spate::libevent::RequestQueue requests;
  char* peer;  // The address as text, or the host of a client's connection.
  ev_uint16_t port;
  sockaddr_storage address;
  int address_size;
  timeval timeout;  // Zero: not set.
  std::size_t most_headers;
  std::uint64_t most_body;
  WrittenCallback after_write;
  void* after_write_argument;
  WrittenCallback close_callback;
  void* close_argument;

  // ---- a client's members (client.cc)

  evdns_base* names;
  int family;
  char* local_address;
  ev_uint16_t local_port;
  timeval retry_delay;
  int retries_most;
  int retries;
  event retry;
  int flags;  // EVHTTP_CON_*
  bool ends_when_done;

  State state;
  bool awaits_chunk_end;  // The line end after a chunk's bytes.
  bool has_trailer;       // At least one line of the trailer section was read.
  bool discards;          // Discards a body that is too long, before the error is sent.
  bool is_freed;
  bool is_advancing;
  bool has_answered;  // Inside advance(): write() was called.
  int stays;

 private:
  struct Line;

  static void on_connecting(evhttp_connection& connection, short what);
  void enable_reading();
  void enable_writing(short what);
  bool sends_below() const;
  void send_answer();
  [[nodiscard]] bool find_line(Line& line);
  [[nodiscard]] bool find_split_line(Line& line);
  void drop(const Line& line);
  [[nodiscard]] bool count_line(const Line& line);
  Progress too_long();
  Progress read_first_line();
  Progress read_headers();
  Progress read_body();
  Progress read_chunks();
  Progress read_trailer();
  Progress read_some(std::size_t count);
  [[nodiscard]] bool move_body(std::size_t count);
  [[nodiscard]] bool parse_request(std::string_view line);
  [[nodiscard]] bool parse_status(std::string_view line);
  [[nodiscard]] bool parse_target(std::string_view target);
  Progress headers_end();
  Progress answer_headers_end();
  Progress interim_response_ends();
  Progress begin_body(spate::libevent::Framing framing);
  const char* expectation() const;
  void ask_for_body();
  [[nodiscard]] bool report_chunk();
  Progress message_ends();
};

namespace spate::libevent {

// Keeps a connection's memory while it exists.
class Stay {
 public:
  explicit Stay(evhttp_connection& connection) : connection_(connection) { ++connection_.stays; }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;
  ~Stay() {
    if (--connection_.stays == 0 && connection_.is_freed) connection_.release_last();
  }

 private:
  evhttp_connection& connection_;
};

// Returns null without memory; `bev` is null then or belongs to the connection.
evhttp_connection* make_connection(event_base* base, bufferevent* bev, const char* peer,
                                   ev_uint16_t port);

}  // namespace spate::libevent
