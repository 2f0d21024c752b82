// evhttp_connection: one connection of a server or a client, its requests in order, and how far the
// first of them is.
//
// Semantics: event2/http.h; order of callbacks, what is enabled when, and what follows which error:
// probes of Debian's 2.1.12 with its security fixes.
//
// A server's connection always has one request, the one that is being read or answered; a client's
// those that wait, the first of which is being sent or answered. server.h, client.h and reply.cc
// have what the two do with a request; this room reads and writes.
//
// Threads: one, as in the original: that of the base. A bufferevent of the program's own may have a
// lock; there is none here.
//
// Lifetime: callbacks may free the connection. It is closed at once, and goes when the last Stay
// has ended; after every callback is_freed says whether to go on.
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
    idle,  // A client's, without a request.
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

  // From the first line of a message on.
  void begin_reading();
  // Goes through what has come.
  void advance();
  void advance_soon();
  // Only waits for the end, which for anything else comes too.
  void begin_idling();

  // ---- writing

  // What was put into the output. `callback`, which may be null, is called when that has been sent,
  // from the loop. Inside advance() nothing begins before that ends (send_answer()).
  void write(WrittenCallback callback, void* argument);
  evbuffer* output() const { return bufferevent_get_output(bev); }
  evbuffer* input() const { return bufferevent_get_input(bev); }

  // ---- ending

  // The request cannot be completed.
  void fail(evhttp_request_error error);
  // Closes the socket, and tells the program's close callback if there was a connection.
  void disconnect();
  void append(evhttp_request& request);
  void unlink(evhttp_request& request);
  void set_timeouts(const timeval& time);
  void close();
  void release_last();

  static void on_readable(bufferevent* bev, void* argument);
  static void on_written(bufferevent* bev, void* argument);
  static void on_event(bufferevent* bev, short what, void* argument);

  TAILQ_ENTRY(evhttp_connection) next;  // Of the server's.
  evhttp* server;                       // Null for a client.
  event_base* base;
  bufferevent* bev;
  spate::libevent::RequestQueue requests;
  char* peer;  // The address as text, or a client's host.
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

  // ---- a client's (client.cc)

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
  bool awaits_chunk_end;  // The line end behind a chunk's bytes.
  bool discards;          // A body that is too long, before that is said.
  bool is_freed;
  bool is_advancing;
  bool has_answered;  // While it advances: write() was called.
  int stays;

 private:
  struct Line;

  void send_answer();
  bool find_line(Line& line);
  bool find_split_line(Line& line);
  void drop(const Line& line);
  bool count_line(const Line& line);
  Progress too_long();
  Progress read_first_line();
  Progress read_headers();
  Progress read_body();
  Progress read_chunks();
  Progress read_trailer();
  Progress read_some(std::size_t count);
  bool parse_request(std::string_view line);
  bool parse_status(std::string_view line);
  bool parse_target(std::string_view target);
  Progress headers_end();
  Progress answer_headers_end();
  Progress continue_request();
  Progress begin_body(spate::libevent::Framing framing);
  const char* expectation() const;
  void ask_for_body();
  bool tell_chunk();
  Progress message_ends();
};

namespace spate::libevent {

// Keeps a connection's memory.
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

// Null without memory; `bev` is null then or belongs to the connection.
evhttp_connection* make_connection(event_base* base, bufferevent* bev, const char* peer,
                                   ev_uint16_t port);

}  // namespace spate::libevent
