// A server's responses.
//
// Semantics: event2/http.h (evhttp_send_reply and the functions after it); probed: the added
// headers, their order, and the connections that are closed after a response.
#include <ctime>

#include "compat/libevent/http/outgoing.h"
#include "compat/libevent/http/reason.h"
#include "compat/libevent/http/request.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";

Version version_of(const evhttp_request& request) { return {request.major, request.minor}; }

bool has_header(const evhttp_request& request, const char* name) {
  return evhttp_find_header(request.output_headers, name) != nullptr;
}

// The value has one line. Without memory the field is left out: a response without a length then
// ends with the connection.
void add(evhttp_request& request, std::string_view name, std::string_view value) {
  if (add_header(*request.output_headers, name, value) != 0) warn("a header field is left out");
}

bool is_old(const evhttp_request& request) { return !version_of(request).is_at_least_1_1(); }

bool is_persistent(const evhttp_request& request) {
  return !is_old(request) || is_kept_alive(*request.input_headers);
}

// A response in pieces without a declared length ends with the connection.
bool ends_with_connection(const evhttp_request& request) {
  return request.userdone == 0 && request.chunked == 0 && !has_header(request, "Content-Length");
}

// ---- the head

// Returns a cached text, updated every second.
const char* date_now(evhttp& server) {
  const std::time_t now = std::time(nullptr);
  if (server.dated != now) {
    std::tm parts;
    evutil_date_rfc1123(server.date, sizeof server.date, gmtime_r(&now, &parts));
    server.dated = now;
  }
  return server.date;
}

void add_length(evhttp_request& request) {
  if (has_header(request, "Transfer-Encoding") || has_header(request, "Content-Length")) return;
  add(request, "Content-Length", Decimal(evbuffer_get_length(request.output_buffer)));
}

void complete_headers(evhttp& server, evhttp_request& request) {
  const bool has_body = may_have_body(request, request.response_code);
  const bool keeps = is_persistent(request) && !ends_with_connection(request);
  if (!is_old(request) && !has_header(request, "Date")) add(request, "Date", date_now(server));
  if (is_old(request) && keeps) add(request, "Connection", "keep-alive");
  if (keeps && has_body) add_length(request);
  if (has_body && server.content_type != nullptr && !has_header(request, "Content-Type")) {
    evhttp_add_header(request.output_headers, "Content-Type", server.content_type);
  }
  if (closes_connection(request, *request.input_headers)) {
    evhttp_remove_header(request.output_headers, "Connection");
    if ((request.flags & EVHTTP_PROXY_REQUEST) == 0) add(request, "Connection", "close");
    evhttp_remove_header(request.output_headers, "Proxy-Connection");
  }
}

void add_status_line(Outgoing& target, const evhttp_request& request) {
  target.add_version(version_of(request));
  target.add(" ", Decimal(request.response_code), " ", request.response_code_line, "\r\n");
}

bool begin_answer(evhttp_request& request, int code, const char* reason) {
  request.kind = EVHTTP_RESPONSE;
  request.response_code = code;
  release(request.response_code_line);
  request.response_code_line = duplicate(reason != nullptr ? reason : reason_of(code));
  return request.response_code_line != nullptr;
}

// Bytes after a response without a body would be taken for the next response; those after one to
// CONNECT belong to the tunnel.
bool may_send(const evhttp_request& request) {
  return request.type == EVHTTP_REQ_CONNECT || may_have_body(request, request.response_code);
}

// Returns false if memory ran out: the connection must end, as the response is not complete.
[[nodiscard]] bool put_piece(const evhttp_request& request, evbuffer* target, evbuffer* piece) {
  const std::size_t size = evbuffer_get_length(piece);
  if (size == 0 || !may_send(request)) return true;
  const bool is_chunk = request.chunked != 0 && request.userdone == 0;
  if (!is_chunk) return evbuffer_add_buffer(target, piece) == 0;
  return evbuffer_add_printf(target, "%zx\r\n", size) >= 0 &&
         evbuffer_add_buffer(target, piece) == 0 && evbuffer_add(target, "\r\n", 2) == 0;
}

// And what the program has prepared.
[[nodiscard]] bool put_head(evhttp_connection& connection, evhttp_request& request) {
  complete_headers(*connection.server, request);
  Outgoing head(connection.output());
  add_status_line(head, request);
  head.add_headers(*request.output_headers);
  return head.end() && put_piece(request, connection.output(), request.output_buffer);
}

// ---- the end

bool has_known_end(const evhttp_request& request) {
  return !may_have_body(request, request.response_code) || has_header(request, "Content-Length") ||
         has_header(request, "Transfer-Encoding");
}

bool closes_after(const evhttp_request& request) {
  return !is_persistent(request) || !has_known_end(request) ||
         closes_connection(request, *request.input_headers) ||
         closes_connection(request, *request.output_headers);
}

void answer_sent(evhttp_connection* connection, void*) {
  evhttp_request* request = connection->request();
  if (request == nullptr) return;
  if (request->on_complete_cb != nullptr) {
    const Deferral deferral(*request);
    request->on_complete_cb(request, request->on_complete_cb_arg);
    if (connection->is_freed || deferral.was_freed()) return;
  }
  const bool closes = closes_after(*request);
  evhttp_request_free(request);
  if (closes || !add_request(*connection)) return evhttp_connection_free(connection);
  connection->begin_reading();
  connection->advance_soon();
}

}  // namespace

// ---- used by clients, too

void Outgoing::add_version(Version version) {
  add("HTTP/", Decimal(version.major), ".", Decimal(version.minor));
}

void Outgoing::add_headers(const evkeyvalq& headers) {
  const evkeyval* header;
  TAILQ_FOREACH(header, &headers, next) add(header->key, ": ", header->value, "\r\n");
  add("\r\n");
}

// ---- pages

void spate::libevent::send_page(evhttp_request& request, int code, const char* reason,
                                evbuffer* page) {
  evhttp_clear_headers(request.output_headers);
  add(request, "Content-Type", "text/html");
  add(request, "Connection", "close");
  request.major = request.minor = 1;
  evhttp_send_reply(&request, code, reason, page);
}

// ---- the exported functions

void evhttp_send_reply(evhttp_request* request, int code, const char* reason, evbuffer* body) {
  if (request->evcon == nullptr) return evhttp_request_free(request);
  if (!begin_answer(*request, code, reason)) return evhttp_connection_free(request->evcon);
  if (body != nullptr) evbuffer_add_buffer(request->output_buffer, body);
  request->userdone = 1;
  if (!put_head(*request->evcon, *request)) return evhttp_connection_free(request->evcon);
  request->evcon->write(answer_sent, nullptr);
}

void evhttp_send_error(evhttp_request* request, int code, const char* reason) {
  if (request->evcon == nullptr) return evhttp_request_free(request);
  const char* text = reason != nullptr ? reason : reason_of(code);
  evbuffer* page = evbuffer_new();
  if (page == nullptr) return evhttp_connection_free(request->evcon);
  evbuffer_add_printf(page,
                      "<HTML><HEAD>\n<TITLE>%d %s</TITLE>\n</HEAD><BODY>\n<H1>%s</H1>\n"
                      "</BODY></HTML>\n",
                      code, text, text);
  send_page(*request, code, text, page);
  evbuffer_free(page);
}

void evhttp_send_reply_start(evhttp_request* request, int code, const char* reason) {
  evhttp_connection* connection = request->evcon;
  if (connection == nullptr) return;
  // The program is not notified; it continues, and ends the request.
  if (!begin_answer(*request, code, reason)) return connection->fail(EVREQ_HTTP_EOF);
  const bool is_chunked =
      !is_old(*request) && may_have_body(*request, code) && !has_header(*request, "Content-Length");
  if (is_chunked) add(*request, "Transfer-Encoding", "chunked");
  request->chunked = is_chunked;
  if (!put_head(*connection, *request)) return connection->fail(EVREQ_HTTP_EOF);
  connection->write(nullptr, nullptr);
}

void evhttp_send_reply_chunk_with_cb(evhttp_request* request, evbuffer* piece,
                                     void (*callback)(evhttp_connection*, void*), void* argument) {
  evhttp_connection* connection = request->evcon;
  if (connection == nullptr || evbuffer_get_length(piece) == 0) return;
  if (!may_have_body(*request, request->response_code)) return;
  if (!put_piece(*request, connection->output(), piece)) return connection->fail(EVREQ_HTTP_EOF);
  connection->write(callback, argument);
}

void evhttp_send_reply_chunk(evhttp_request* request, evbuffer* piece) {
  evhttp_send_reply_chunk_with_cb(request, piece, nullptr, nullptr);
}

void evhttp_send_reply_end(evhttp_request* request) {
  evhttp_connection* connection = request->evcon;
  if (connection == nullptr) return evhttp_request_free(request);
  request->userdone = 1;
  if (request->chunked != 0) {
    if (evbuffer_add(connection->output(), kLastChunk.data(), kLastChunk.size()) != 0) {
      return evhttp_connection_free(connection);
    }
    request->chunked = 0;
    return connection->write(answer_sent, nullptr);
  }
  if (evbuffer_get_length(connection->output()) != 0) {
    return connection->write(answer_sent, nullptr);
  }
  const Stay stay(*connection);
  answer_sent(connection, nullptr);
}
